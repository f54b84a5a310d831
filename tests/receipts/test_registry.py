"""The registry claims no more than its evidence: for the real entries, and for planted ones that must be refused."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the book is a folder of the repository, not an installed package

from autograder.authoring.chapters import find_chapters  # noqa: E402
from book import evidence, proofs  # noqa: E402
from book.registry import CORRECTIONS, EVIDENCE, KINDS, Formula, Registry, RegistryError, load  # noqa: E402


@pytest.fixture(scope="module")
def registry():
    return load()


# ---------------------------------------------------------------- the real registry


def test_every_claim_has_its_evidence(registry):
    assert evidence.problems(registry) == []


def test_every_expected_formula_is_entered(registry):
    rows = dict(line.split("\t") for line in (Path(__file__).parent / "expected.tsv").read_text().splitlines())
    missing = sorted(set(rows) - set(registry.formulas))
    assert missing == []
    misplaced = {id: registry.formulas[id].chapter for id in rows if registry.formulas[id].chapter != rows[id]}
    assert misplaced == {}


ID = r"(?:[a-z]+\d*(?:-[a-z0-9]+)+|[a-z]{1,2}\d+[a-z]?)"
MENTION = re.compile(rf"\b[Ff]ormulas? ({ID}(?:(?:,| and|, and) {ID})*)(?![\w-])")


def test_every_formula_that_a_text_names_is_in_the_registry(registry):
    files = [*ROOT.glob("course/**/*.py"), *ROOT.glob("source/*/answers.py"), *ROOT.glob("*.md")]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    for chapter in find_chapters(ROOT):
        texts[chapter.path] = "\n".join(cell.source for cell in chapter.notebook.cells)
    named = [(path.name, id) for path, text in texts.items() for ids in MENTION.findall(text) for id in re.findall(ID, ids)]
    assert len(named) > 300
    assert [(name, id) for name, id in named if id not in registry.formulas] == []


def test_the_kinds_of_receipt_are_explained_and_coloured():
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\nReceipts: ")[2].partition("\n\n")[0]
    assert re.findall(r"\*\*(\w+)\*\*", told) == list(KINDS)
    style = (ROOT / "book" / "assets" / "course.css").read_text(encoding="utf-8")
    coloured = set(re.findall(r"\.receipt-(\w+)", style))
    assert coloured == {*EVIDENCE, *CORRECTIONS}  # those that claim none have the colour of a badge


def test_every_erratum_names_a_check_that_is_there(registry):
    for erratum in registry.errata.values():
        path, _, name = erratum.check.partition("::")
        assert (ROOT / path).is_file(), erratum
        assert re.search(rf"^def {re.escape(name)}\(", (ROOT / path).read_text(), re.MULTILINE), erratum


def texts(registry: Registry) -> dict[str, str]:
    """Every formula of the registry, and the mathematics inside its sentences."""
    found = {}
    for formula in registry.formulas.values():
        found[formula.id] = formula.latex
        for name in ("does", "shows", "limits", "wrong", "right"):
            for number, inside in enumerate(re.findall(r"\$([^$]+)\$", getattr(formula, name))):
                found[f"{formula.id}, {name} {number}"] = inside
    for term in registry.terms.values():
        for number, inside in enumerate(re.findall(r"\$([^$]+)\$", term.definition)):
            found[f"{term.term} {number}"] = inside
    return found


def test_braces_and_environments_balance(registry):
    for label, latex in texts(registry).items():
        bare = re.sub(r"\\[\\{}]", "", latex)
        assert bare.count("{") == bare.count("}"), label
        assert latex.count(r"\begin") == latex.count(r"\end"), label
        assert len(re.findall(r"\\left(?![a-z])", latex)) == len(re.findall(r"\\right(?![a-z])", latex)), label


def test_katex_typesets_every_formula(registry):
    pytest.importorskip("sphinxcontrib.katex")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    from book.extension import MathError, html_of

    wrong = {}
    for label, latex in texts(registry).items():
        try:
            assert "katex" in html_of(latex)
        except MathError as error:
            wrong[label] = str(error)
    assert wrong == {}


# ---------------------------------------------------------------- what must be refused


GOOD = Formula("p1", "Planted", "x", "Does.", "f01", "computed", "tests/receipts/test_planted.py::test_p1", "equal to 1e-12")
MODULE = """import pytest
import sympy as sp
from sympy import simplify
from course import data


def helper(x):
    return sp.expand(x)


@pytest.mark.receipt("p1", "computed")
def test_p1():
    error = 1e-13
    assert error <= 1e-12
"""


def judge(tmp_path, module=MODULE, **changed) -> str:
    """The problems that a planted test module and entry have."""
    folder = tmp_path / "tests" / "receipts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_planted.py").write_text(module)
    formula = replace(GOOD, **changed)
    return "\n".join(evidence.problems(Registry({}, {formula.id: formula}, {}, {}, {}), tmp_path))


def test_good_evidence_is_accepted(tmp_path):
    assert judge(tmp_path) == ""


def test_a_missing_test_is_refused(tmp_path):
    assert "there is no test" in judge(tmp_path, evidence="tests/receipts/test_planted.py::test_gone")
    assert "there is no test" in judge(tmp_path, evidence="tests/receipts/test_elsewhere.py::test_p1")


def test_a_test_of_another_formula_is_refused(tmp_path):
    told = judge(tmp_path, MODULE.replace('"p1"', '"p2"'))
    assert "is not its receipt" in told and "p2, which has no entry" in told


@pytest.mark.parametrize(("claim", "kind", "accepted"), [
    ("derived", "computed", False),
    ("measured", "computed", False),
    ("computed", "measured", False),
    ("proved", "derived", False),
    ("computed", "derived", True),
    ("erratum", "computed", True),
    ("refuted", "measured", True),
])  # fmt: skip
def test_a_claim_above_its_evidence_is_refused(claim, kind, accepted):
    assert evidence.carries(kind, claim) is accepted


def test_a_claim_above_the_marker_is_refused(tmp_path):
    assert "claims derived, but" in judge(tmp_path, receipt="derived")


def test_a_derivation_without_sympy_is_refused(tmp_path):
    module = MODULE.replace('"computed"', '"derived"')
    assert "derives nothing" in judge(tmp_path, module, receipt="derived")
    assert judge(tmp_path, module.replace("error = 1e-13", "error = helper(0)"), receipt="derived") == ""
    assert judge(tmp_path, module.replace("error = 1e-13", "error = simplify(0)"), receipt="derived") == ""


def test_a_computation_without_a_bound_is_refused(tmp_path):
    assert "asserts no bound" in judge(tmp_path, MODULE.replace("assert error <= 1e-12", "print(error)"))
    assert "asserts no bound" in judge(tmp_path, MODULE.replace("assert error <= 1e-12", "assert error is not None"))


@pytest.mark.parametrize("escape", ["@pytest.mark.skip", "@pytest.mark.skipif(True, reason='…')", "@pytest.mark.xfail"])
def test_evidence_that_may_be_skipped_is_refused(tmp_path, escape):
    assert "evidence must run" in judge(tmp_path, MODULE.replace("@pytest.mark.receipt", f"{escape}\n@pytest.mark.receipt"))


def test_evidence_that_skips_itself_is_refused(tmp_path):
    assert "evidence must run" in judge(
        tmp_path, MODULE.replace("    error = 1e-13", "    error = 1e-13\n    pytest.skip('later')")
    )
    assert "evidence must run" in judge(
        tmp_path, MODULE.replace("\n\ndef helper", "\npytestmark = pytest.mark.skip\n\n\ndef helper")
    )


def test_a_measurement_needs_a_whole_record(tmp_path):
    module = MODULE.replace('"computed"', '"measured"').replace("error = 1e-13", 'error = data.record("planted")["error"]')
    assert "reads no record" in judge(tmp_path, MODULE.replace('"computed"', '"measured"'), receipt="measured")
    assert "there is no record" in judge(tmp_path, module, receipt="measured")
    assert "script experiments/planted.py is not there" in judge(tmp_path, module, receipt="measured")
    records = tmp_path / "course" / "data" / "records"
    records.mkdir(parents=True)
    (records / "planted.json").write_text(json.dumps({"error": 0}))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "planted.py").write_text("")
    told = judge(tmp_path, module, receipt="measured")
    assert "the record planted has no seeds" in told and "has an interval" in told
    whole = dict.fromkeys(("experiment", "mode", "date", "device", "interval"), "said")
    whole |= {"versions": {}, "settings": {}, "seeds": [1, 2], "results": {"error": 0}}
    (records / "planted.json").write_text(json.dumps(whole))
    assert judge(tmp_path, module, receipt="measured") == ""
    (records / "planted.json").write_text(json.dumps(whole | {"seeds": [], "settings": 7, "interval": None}))
    told = judge(tmp_path, module, receipt="measured")
    assert "names no seed" in told and "says its settings as int" in told and "has an interval" in told


def test_a_proof_names_a_theorem_that_is_proved(tmp_path):
    claim = {"receipt": "proved", "evidence": "tests/receipts/proofs/p.v::sums_to_one"}
    assert "a proof's evidence is" in judge(tmp_path, receipt="proved")
    assert "there is no theorem tests/receipts/proofs/p.v::sums_to_one" in judge(tmp_path, **claim)
    folder = tmp_path / "tests" / "receipts" / "proofs"
    folder.mkdir()
    (folder / "p.v").write_text("(** One. *)\n\n(** It sums to one. *)\nTheorem sums_to_one : 1 = 1.\nProof. reflexivity. Qed.\n")
    assert "new or changed since it was checked" in judge(tmp_path, **claim)
    digest = proofs.digests(proofs.read(tmp_path))["p"]
    record = folder / "assumptions.json"
    record.write_text(json.dumps({"p": {"digest": digest, "theorems": {"sums_to_one": ["p.sums_to_one"]}}}))
    assert "assumes p.sums_to_one, which is not proved" in judge(tmp_path, **claim)
    record.write_text(json.dumps({"p": {"digest": digest, "theorems": {"sums_to_one": ["Classical_Prop.classic"]}}}))
    assert judge(tmp_path, **claim) == ""
    assert judge(tmp_path, **claim | {"receipt": "erratum"}) == ""
    assert "there is no test" in judge(tmp_path, **claim | {"receipt": "measured"})


def test_an_unreadable_marker_is_told(tmp_path):
    assert "as two strings" in judge(tmp_path, MODULE.replace('("p1", "computed")', "(ID, KIND)"))
    assert "kind 'sure' is none of" in judge(tmp_path, MODULE.replace('"computed"', '"sure"'))


# ---------------------------------------------------------------- the form of the registries

ENTRY = {"id": "c-planted", "name": "Planted", "latex": "x", "does": "Does.", "chapter": "c", "receipt": "open"}
TERM = {"term": "odds", "chapter": "c", "definition": "A ratio."}


def read(tmp_path, **files) -> str:
    """What `load` says of registries with these entries; "" if they are good."""
    content = {"chapters": {"c": "Chapter"}, "formulas": [ENTRY], "glossary": [TERM], "bibliography": [], "errata": []} | files
    for name, entries in content.items():
        (tmp_path / f"{name}.yml").write_text(entries if isinstance(entries, str) else yaml.safe_dump(entries))
    try:
        load(tmp_path)
    except RegistryError as error:
        return str(error)
    return ""


def test_good_registries_are_read(tmp_path):
    assert read(tmp_path) == ""
    assert read(tmp_path, formulas="# nothing yet", glossary="") == ""


@pytest.mark.parametrize(("change", "told"), [
    ({"colour": "red"}, "unknown colour; an entry has id, name, latex"),
    ({"does": ""}, "say does"),
    ({"chapter": "ch99"}, "'ch99' is none of the chapters"),
    ({"receipt": "believed"}, "'believed' is none of proved, derived"),
    ({"id": "planted"}, "its id says its chapter and, in small letters, what it is: c-…"),
    ({"id": "c2-planted"}, "its id says its chapter"),
    ({"id": "c-Planted"}, "its id says its chapter"),
    ({"receipt": "computed", "shows": "equal"}, "names its evidence"),
    ({"receipt": "computed", "evidence": "tests/a.py::test_b"}, "says in `shows` what the evidence shows"),
    ({"receipt": "reported"}, "cites its `source`"),
    ({"receipt": "open", "evidence": "tests/a.py::test_b"}, "claims no evidence"),
    ({"receipt": "erratum", "evidence": "tests/a.py::test_b", "shows": "it"}, "what was `wrong` and what is `right`"),
])  # fmt: skip
def test_a_wrong_entry_is_refused(tmp_path, change, told):
    assert told in read(tmp_path, formulas=[ENTRY | change])


def test_doubled_entries_and_keys_are_refused(tmp_path):
    assert "two entries" in read(tmp_path, formulas=[ENTRY, ENTRY])
    assert "'chance' already names 'odds'" in read(tmp_path, glossary=[TERM | {"also": ["chance"]}, TERM | {"term": "chance"}])
    assert "id is given twice in one entry" in read(tmp_path, formulas="- {id: a, id: b}")
    assert "is not YAML" in read(tmp_path, formulas="- id: 'x")
    assert "also is a list" in read(tmp_path, glossary=[TERM | {"also": "chance"}])
    assert "every entry is a mapping" in read(tmp_path, formulas=["p1"])


# ---------------------------------------------------------------- receipts that do not run

RUNS = """import pytest


@pytest.mark.receipt("p1", "computed")
def test_skipped():
    pytest.skip("no time")


@pytest.mark.receipt("p1", "computed")
def test_excused():
    pytest.xfail("one day")


@pytest.mark.xfail
@pytest.mark.receipt("p1", "computed")
def test_excused_though_it_passes():
    assert True


@pytest.mark.receipt("p1", "computed")
def test_good():
    assert True
"""


def test_receipts_that_do_not_run_fail(tmp_path):
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(RUNS)
    (tmp_path / "test_whole.py").write_text('import pytest\n\npytest.importorskip("no_such_package")\n')
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-rA",
            "--continue-on-collection-errors",
            "-p",
            "no:cacheprovider",
            "--strict-markers",
            "--rootdir",
            str(tmp_path),
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    outcomes = {name: word for word, name in re.findall(r"^(FAILED|PASSED|ERROR) (?:\S*[:/])?(\w+)", done.stdout, re.MULTILINE)}
    assert outcomes == {
        "test_skipped": "FAILED",
        "test_excused": "FAILED",
        "test_excused_though_it_passes": "FAILED",
        "test_good": "PASSED",
        "test_whole": "ERROR",
    }
    for told in ("was skipped", "was expected to fail", "skipped as a whole"):
        assert told in done.stdout
    assert done.returncode == 1, done.stdout
