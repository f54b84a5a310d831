"""Every proof holds and assumes no more than it may; planted faults are caught."""

import json
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the book is a folder of the repository, not an installed package

from book import proofs  # noqa: E402
from book.registry import load  # noqa: E402

# ---------------------------------------------------------------- the real proofs


@pytest.fixture(scope="module")
def checked():
    return proofs.check()


@pytest.mark.parametrize("claim", sorted(proofs.theorems()))
def test_theorem(checked, claim):
    file, _, name = claim.partition("::")
    assert set(checked[Path(file).stem]["theorems"][name]) <= set(proofs.ALLOWED)


def test_what_is_written_of_the_proofs_is_fresh(checked):
    assert json.loads((ROOT / proofs.RECORD).read_text()) == checked, "run `make proofs`"
    text = (ROOT / proofs.README).read_text()
    assert proofs.readme(text, load()) == text, "run `make proofs`"


# ---------------------------------------------------------------- what must be refused

GOOD = """(** Even numbers. Proved: a double is even. Not said: anything else. *)

(** Twice a number. *)
Definition double (n : nat) : nat := n + n.

Lemma add_zero n : n + 0 = n.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; reflexivity. Qed.

(** A double
    is two times the number. *)
Theorem double_is_two_times n : double n = 2 * n.
Proof. simpl; rewrite add_zero; reflexivity. Qed.
"""
CLAIM = "tests/receipts/proofs/even.v::double_is_two_times"


@pytest.fixture
def judge(tmp_path):
    """What `check` says of planted files, given by their stems; "" if they are good."""
    folder = tmp_path / proofs.FOLDER
    folder.mkdir(parents=True)

    def told(**files) -> str:
        for stem, text in files.items():
            (folder / f"{stem}.v").write_text(text)
        try:
            record = proofs.check(tmp_path)
        except proofs.ProofError as error:
            return str(error)
        (tmp_path / proofs.RECORD).write_text(json.dumps(record))
        return ""

    return told


def test_a_good_proof_is_accepted_and_read(judge, tmp_path):
    assert judge(even=GOOD) == ""
    assert proofs.theorems(tmp_path) == {
        CLAIM: proofs.Theorem(
            "A double is two times the number.",
            "Theorem double_is_two_times n : double n = 2 * n.",
            ("(** Twice a number. *)\nDefinition double (n : nat) : nat := n + n.",),
        )
    }
    assert proofs.recorded(tmp_path) == {CLAIM: []}
    assert list(proofs.problems_of(CLAIM, tmp_path)) == []
    said = "\n".join(proofs.entries(tmp_path)[CLAIM])
    assert "Theorem double_is_two_times" in said and "Definition" not in said and "Assumes nothing." in said


def test_a_wrong_statement_is_refused(judge):
    assert "even.v: Rocq refuses it" in judge(even=GOOD.replace("= 2 * n", "= 3 * n"))


@pytest.mark.parametrize("fault", ["Admitted", "admit", "Axiom", "Parameter", "Hypothesis", "Unset"])
def test_a_word_that_assumes_is_refused(judge, fault):
    line = {
        "Admitted": "Lemma l : 1 = 2. Admitted.",
        "admit": "Lemma l : 1 = 2. Proof. admit. Qed.",
        "Unset": "Unset Guard Checking.",
    }
    assert f"assumes what it should prove: {fault}" in judge(even=GOOD + line.get(fault, f"{fault} l : 1 = 2.") + "\n")
    assert judge(even=GOOD + f"(* {fault} (* is only *) a word here *)\n") == ""


def test_an_axiom_that_is_not_allowed_is_found_by_what_rocq_says(judge):
    """The word does not stand in our files, but in a library."""
    imported = GOOD.replace("\n\n(** Twice", "\n\nFrom Coq Require Import ClassicalEpsilon.\n\n(** Twice", 1)
    chosen = "(** Choice. *)\nTheorem chosen : exists n : nat, n = epsilon (inhabits 0) (fun n => n = 1).\nProof. eexists; reflexivity. Qed.\n"
    told = judge(even=imported + "\n" + chosen)
    assert "chosen assumes ClassicalEpsilon.constructive_indefinite_description" in told and "double_is" not in told


def test_the_cache_never_answers_for_another_text(judge, tmp_path):
    user = "(** Uses another file. *)\nFrom Proofs Require Import even.\n\n(** Two. *)\nTheorem two : double 1 = 2.\nProof. reflexivity. Qed.\n"
    assert judge(even=GOOD, user=user) == ""
    kept = (tmp_path / "build" / "proofs" / "user.vo").stat().st_mtime_ns
    assert judge(even=GOOD, user=user) == ""
    assert (tmp_path / "build" / "proofs" / "user.vo").stat().st_mtime_ns == kept  # the same text is not compiled again
    changed = GOOD.replace("n + n", "n + (n + 0)").replace("simpl; rewrite add_zero", "unfold double")
    assert judge(even=changed, user=user) == ""
    assert (tmp_path / "build" / "proofs" / "user.vo").stat().st_mtime_ns != kept  # what it imports has changed
    assert "even.v: Rocq refuses it" in judge(even=GOOD.replace("= 2 * n", "= 3 * n"), user=user)
    assert "even.v: Rocq refuses it" in judge()  # a failure is not kept
    assert judge(even=GOOD) == ""


def test_a_record_of_another_text_is_no_evidence(judge, tmp_path):
    assert "there is no theorem" in "".join(proofs.problems_of(CLAIM, tmp_path))
    judge(even=GOOD)
    (tmp_path / proofs.FOLDER / "even.v").write_text(GOOD + "\n")
    assert "changed since it was checked" in "".join(proofs.problems_of(CLAIM, tmp_path))
    assert "there is no theorem" in "".join(proofs.problems_of(CLAIM + "s", tmp_path))


@pytest.mark.parametrize(("old", "new", "told"), [
    ("(** Even numbers", "(* Even numbers", "starts with no header"),
    ("(** A double\n", "(* A double\n", "say double_is_two_times in words"),
    ("Lemma", "Corollary", "uses Corollary"),
    ("Lemma", "From Proofs Require Import odd.\nLemma", "there is no odd.v"),
    ("Lemma", "From Proofs Require Import even.\nLemma", "files import each other"),
])  # fmt: skip
def test_a_file_of_another_form_is_refused(judge, old, new, told):
    assert told in judge(even=GOOD.replace(old, new))


def test_an_abandoned_theorem_is_refused(judge):
    assert "even.v: Rocq refuses it" in judge(even=GOOD[: GOOD.rindex("Qed.")] + "Abort.\n")


def test_without_rocq_nothing_passes(judge, monkeypatch, tmp_path, capsys):
    assert judge(even=GOOD) == ""  # and is in the cache
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "no proof was checked" in judge(even=GOOD)
    assert proofs.main(["--install"], tmp_path) == 1
    assert "there is no apt-get here" in capsys.readouterr().err
