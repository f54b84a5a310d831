"""The machine-checked proofs of `tests/receipts/proofs`: checked with Rocq, and read for the book.

python -m book.proofs              check all proofs; write assumptions.json and the table of README.md there
python -m book.proofs --check      write nothing; exit with 1 if one of the two is stale
python -m book.proofs --install    before that, install Rocq with apt-get where it is missing

A file is checked by compiling it and asking Rocq what each of its theorems assumes. The answers are kept in
`build/proofs` under a hash of the file, of the files it imports and of Rocq's version.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from book.registry import ROOT, Registry, RegistryError, load
from book.tools import PROGRAMS, ToolError, apt_install, find

FOLDER = Path("tests", "receipts", "proofs")
RECORD, README = FOLDER / "assumptions.json", FOLDER / "README.md"
PACKAGES = PROGRAMS["coqc"]
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec": "the real numbers of Rocq's standard library",
    "ClassicalDedekindReals.sig_not_dec": "the real numbers of Rocq's standard library",
    "FunctionalExtensionality.functional_extensionality_dep": "functional extensionality",
    "Classical_Prop.classic": "the law of excluded middle",
}
ASSUMING = r"Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Hypothes[ie]s|Variables?|Context|Unset|bypass_check"
THEOREM = re.compile(r"\(\*\*\s(?P<words>(?:(?!\*\)).)*)\*\)\s*(?P<text>Theorem\s+(?P<name>\w+).*?\.)\s*\nProof\b", re.DOTALL)
DEFINITION = re.compile(
    r"^(?P<text>(?:\(\*\*\s(?:(?!\*\)).)*\*\)\n)?(?:Definition|Fixpoint)\s+(?P<name>\w+).*?\.)\n(?=\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
SECONDS = 300  # for one file; each takes a few


class ProofError(Exception):
    """A proof that is not there, does not hold or assumes too much; each line says where and what to do."""


@dataclass(frozen=True)
class Theorem:
    """A theorem as a reader meets it."""

    words: str
    statement: str
    definitions: tuple[str, ...]  # those of our own that the statement uses, with their comments


@dataclass(frozen=True)
class Proof:
    """One file of proofs."""

    path: Path
    text: str

    @cached_property
    def code(self) -> str:
        """The text without comments."""
        return without_comments(self.text)

    @cached_property
    def imports(self) -> list[str]:
        """The stems of our own files that this one imports."""
        return [
            name
            for names in re.findall(r"From Proofs Require (?:Import|Export)? ?([^.]*)\.", self.code)
            for name in names.split()
        ]

    def problems(self):
        """What can be told without compiling."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.path.stem):
            yield f"{self.path.name}: the name of a file has small letters, digits and underscores"
        if not self.text.startswith("(** "):
            yield f"{self.path.name}: starts with no header (** … *) that says what is proved, under what, and what is not said"
        if found := re.findall(rf"\b(?:{ASSUMING})\b", self.code):
            yield f"{self.path.name}: assumes what it should prove: {', '.join(sorted(set(found)))}"
        if found := re.findall(r"\b(?:Corollary|Proposition|Fact|Remark|Section|Module)\b", self.code):
            yield f"{self.path.name}: uses {', '.join(sorted(set(found)))}: a result is a Theorem, a step is a Lemma, and each states all it needs"
        worded = {match["name"] for match in THEOREM.finditer(self.text)}
        for name in re.findall(r"\bTheorem\s+(\w+)", self.code):
            if name not in worded:
                yield f"{self.path.name}: say {name} in words, (** … *) above it, and start its proof with a line Proof."


def read(root: Path = ROOT) -> dict[str, Proof]:
    """The files of proofs by their stems, each after the files that it imports.

    Raises:
        ProofError: if a file imports one that is not there, or two import each other.
    """
    found = {path.stem: Proof(path, path.read_text(encoding="utf-8")) for path in sorted((root / FOLDER).glob("*.v"))}
    if missing := [f"{p.path.name}: there is no {name}.v" for p in found.values() for name in p.imports if name not in found]:
        raise ProofError("\n".join(missing))
    try:
        order = TopologicalSorter({stem: proof.imports for stem, proof in found.items()}).static_order()
        return {stem: found[stem] for stem in order}
    except CycleError as error:
        raise ProofError(f"{FOLDER}: files import each other: {', '.join(error.args[1])}") from None


def theorems(root: Path = ROOT) -> dict[str, Theorem]:
    """The theorems of all files by what a registry's `evidence` calls them, `tests/receipts/proofs/….v::name`."""
    proofs, known, found = read(root), {}, {}
    for stem, proof in proofs.items():
        known[stem] = {name: text for imported in proof.imports for name, text in known[imported].items()}
        known[stem] |= {match["name"]: match["text"] for match in DEFINITION.finditer(proof.text)}
        for match in THEOREM.finditer(proof.text):
            definitions = tuple(_used(match["text"], known[stem]))
            found[evidence(stem, match["name"])] = Theorem(" ".join(match["words"].split()), match["text"], definitions)
    return found


def evidence(stem: str, theorem: str) -> str:
    """What a registry's entry calls a theorem."""
    return f"{(FOLDER / stem).as_posix()}.v::{theorem}"


def _used(text: str, defined: dict[str, str]) -> list[str]:
    """The definitions that a statement needs, in the order in which they stand in the files."""
    needed, open_ = set(), [text]
    while open_:
        words = set(re.findall(r"\w+", without_comments(open_.pop())))
        for name in words & set(defined) - needed:
            needed.add(name)
            open_.append(defined[name])
    return [text for name, text in defined.items() if name in needed]


def without_comments(text: str) -> str:
    """Rocq's text without its comments, which nest."""
    kept, depth = [], 0
    for piece in re.split(r"(\(\*|\*\))", text):
        if piece == "(*":
            depth += 1
        elif piece == "*)":
            depth -= 1
        elif not depth:
            kept.append(piece)
    return " ".join(kept)


def digests(proofs: dict[str, Proof]) -> dict[str, str]:
    """A hash of each file and all that it imports."""
    made = {}
    for stem, proof in proofs.items():
        parts = [proof.text, *(made[name] for name in sorted(proof.imports))]
        made[stem] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return made


# ---------------------------------------------------------------- what Rocq says


def check(root: Path = ROOT, build: Path | None = None) -> dict[str, dict]:
    """Check every proof with Rocq.

    Args:
        root: the course folder.
        build: keeps what was checked; `build/proofs` without it.

    Returns:
        For each file its `digest` and, of each of its `theorems`, the sorted names of the axioms it assumes.

    Raises:
        ProofError: everything that does not hold, or that Rocq is not there.
    """
    proofs = read(root)
    problems = [problem for proof in proofs.values() for problem in proof.problems()]
    if problems:
        raise ProofError("\n".join(problems))
    build = build or root / "build" / "proofs"
    build.mkdir(parents=True, exist_ok=True)
    version, made = rocq(), digests(proofs)
    order = TopologicalSorter({stem: proof.imports for stem, proof in proofs.items()})
    order.prepare()
    told, failed = {}, {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a process of Rocq's

        def started():
            return {pool.submit(_checked, proofs[stem], f"{made[stem]} {version}", build): stem for stem in order.get_ready()}

        running = started()
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                stem = running.pop(future)
                try:
                    told[stem] = future.result()
                    order.done(stem)
                except ProofError as error:  # what imports this file is never ready: it is said once
                    failed[stem] = str(error)
            running |= started()
    problems = [failed[stem] for stem in proofs if stem in failed]
    checked = {stem: {"digest": made[stem], "theorems": told[stem]} for stem in proofs if stem in told}
    for stem, entry in checked.items():
        for theorem, assumed in entry["theorems"].items():
            if ours := [name for name in assumed if name not in ALLOWED]:
                problems.append(f"{stem}.v: {theorem} assumes {', '.join(ours)}, which is not proved")
    if problems:
        raise ProofError("\n".join(problems))
    return checked


def _checked(proof: Proof, key: str, build: Path) -> dict[str, list[str]]:
    """What each theorem of a file assumes: from the cache, or from Rocq."""
    stem, names = proof.path.stem, [match["name"] for match in THEOREM.finditer(proof.text)]
    kept = build / f"{stem}.json"
    if kept.is_file() and (build / f"{stem}.vo").is_file() and (entry := json.loads(kept.read_text()))["key"] == key:
        return entry["theorems"]
    kept.unlink(missing_ok=True)
    (build / proof.path.name).write_text(proof.text, encoding="utf-8")
    _compile(build / proof.path.name, proof.path.name)
    asked = [f"From Proofs Require {stem}."]
    for name in names:
        asked += [f'Goal True. idtac "@@ {name}". Abort.', f"Print Assumptions {stem}.{name}."]
    question = build / f"ask_{stem}.v"
    question.write_text("\n".join(asked), encoding="utf-8")
    told = _compile(question, proof.path.name)
    found = {name: assumptions(told.partition(f"@@ {name}\n")[2].partition("@@ ")[0]) for name in names}
    kept.write_text(json.dumps({"key": key, "theorems": found}))
    return found


def assumptions(told: str) -> list[str]:
    """The names in an answer to `Print Assumptions`; their types stand indented below them."""
    if told.strip() == "Closed under the global context":
        return []
    names = {
        line.split()[0] for line in told.splitlines() if line.strip() and not line[0].isspace() and line.strip() != "Axioms:"
    }
    return sorted(names) or ["something that Rocq did not name"]


def _compile(path: Path, name: str) -> str:
    """Compile a file of the build folder and return what Rocq printed."""
    command = ["coqc", "-q", "-w", "none", "-Q", ".", "Proofs", path.name]
    try:
        done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise ProofError(f"{name}: not checked after {SECONDS} s: split its slowest proof into lemmas") from None
    if done.returncode:
        raise ProofError(f"{name}: Rocq refuses it:\n{done.stderr.strip()}")
    return done.stdout


def rocq() -> str:
    """Which Rocq and which Coquelicot are installed.

    Raises:
        ProofError: if one is missing.
    """
    if find("coqc"):
        version = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True).stdout
        where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True).stdout.strip()
        library = Path(where, "user-contrib", "Coquelicot", "Coquelicot.vo")
        if library.is_file():
            return f"{version} {hashlib.sha256(library.read_bytes()).hexdigest()}"
    raise ProofError(
        f"Rocq with Coquelicot is missing, so no proof was checked: `make proofs` installs {' and '.join(PACKAGES)} where there is "
        "apt-get; elsewhere `opam install coq coq-coquelicot` and put coqc on the PATH"
    )


def install() -> None:
    """Install Rocq and Coquelicot with apt-get, if they are missing.

    Raises:
        ProofError: if that cannot be done here.
    """
    try:
        rocq()
        return
    except ProofError as missing:
        try:
            apt_install(*PACKAGES)
        except ToolError as error:
            raise ProofError(f"{missing}; {error}") from None
    rocq()


# ---------------------------------------------------------------- what is written


def recorded(root: Path = ROOT) -> dict[str, list[str]]:
    """What theorems assume, of the files that are unchanged since they were checked."""
    path, now = root / RECORD, digests(read(root))
    record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        evidence(stem, name): assumed
        for stem, entry in record.items()
        if entry["digest"] == now.get(stem)
        for name, assumed in entry["theorems"].items()
    }


def problems_of(claim: str, root: Path = ROOT):
    """What is wrong with a registry's entry whose evidence is a theorem."""
    if claim not in theorems(root):
        yield f"there is no theorem {claim}"
    elif (assumed := recorded(root).get(claim)) is None:
        yield f"{claim} is new or changed since it was checked: run `make proofs`"
    elif ours := [name for name in assumed if name not in ALLOWED]:
        yield f"{claim} assumes {', '.join(ours)}, which is not proved"


def entries(root: Path = ROOT) -> dict[str, list[str]]:
    """What the book's page of formulas says of each theorem, in Markdown."""
    known, proofs, made = recorded(root), read(root), {}
    for claim, theorem in theorems(root).items():
        path, _, name = claim.partition("::")
        reasons = sorted({ALLOWED.get(axiom, axiom) for axiom in known.get(claim, [])})
        file, *below = [f"{{download}}`{stem}.v <../proofs/{stem}.v>`" for stem in _with_imports(Path(path).stem, proofs)]
        made[claim] = [
            f'<details class="proof"><summary>Proved in Rocq: <code>{name}</code></summary>',
            "",
            theorem.words,
            "",
            "```coq",
            theorem.statement,  # what it speaks of is defined on the page of its proof
            "```",
            "",
            f"Assumes {_listed(reasons) if reasons else 'nothing'}. "
            f"The proof is in {file}{f', built on {_listed(below)}' if below else ''}.",
            "",
            "</details>",
            "",
        ]
    return made


def _with_imports(stem: str, proofs: dict[str, Proof]) -> list[str]:
    """A file and all that it imports, itself first."""
    found = [stem]
    for name in found:
        found += [imported for imported in proofs[name].imports if imported not in found]
    return found


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def readme(text: str, registry: Registry, root: Path = ROOT) -> str:
    """README.md with its table of theorems brought up to date."""
    backed: dict[str, list[str]] = {}
    for formula in registry.formulas.values():
        backed.setdefault(formula.evidence, []).append(formula.id)
    lines = ["| Theorem | In words | Formula |", "|:---|:---|:---|"]
    for claim, theorem in theorems(root).items():
        file, _, name = claim.rpartition("/")[2].partition("::")
        words = theorem.words.replace("|", r"\|")
        lines.append(f"| [{file}]({file})<br>`{name}` | {words} | {', '.join(backed.get(claim, []))} |")
    before, mark, _ = text.partition("<!-- theorems -->\n")
    return before + mark + "\n" + "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m book.proofs", description="Check the proofs with Rocq.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if what is written is stale")
    parser.add_argument("--install", action="store_true", help="install Rocq with apt-get where it is missing")
    options = parser.parse_args(arguments)
    try:
        if options.install:
            install()
        checked = check(root)
        fresh = {
            RECORD: json.dumps(checked, indent=1) + "\n",
            README: readme((root / README).read_text(encoding="utf-8"), load(root / "book" / "reference"), root),
        }
    except (ProofError, RegistryError) as error:
        print(error, file=sys.stderr)
        return 1
    stale = [
        path for path, text in fresh.items() if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if not options.check:
            (root / path).write_text(fresh[path], encoding="utf-8")
        print(f"{path} {'is stale: run `make proofs`' if options.check else 'is written'}")
    used = sorted({axiom for entry in checked.values() for assumed in entry["theorems"].values() for axiom in assumed})
    print(
        f"{sum(len(entry['theorems']) for entry in checked.values())} theorems in {len(checked)} files hold; they assume at most"
    )
    print("\n".join(f"  {axiom}: {ALLOWED[axiom]}" for axiom in used))
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
