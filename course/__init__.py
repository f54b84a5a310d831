"""The reference code of The Mathematics of Transformers, one module a chapter."""


def __getattr__(name: str) -> str:
    """`course.__version__`, of what was installed; pyproject.toml sets it."""
    if name != "__version__":
        raise AttributeError(f"module 'course' has no attribute {name!r}")
    from importlib import metadata  # not on each start of a student's process

    for distribution in ("mathematics-of-transformers", "mathematics-of-transformers-student"):  # the project; the students' zip
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    raise AttributeError("course was not installed, so it has no version: run `pip install .` in its folder")
