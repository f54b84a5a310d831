"""Texts that the chapters read and records that experiments wrote. README.md tells where each is from."""

import json
import lzma
import math
import platform
from collections.abc import Iterable
from datetime import date
from importlib import metadata
from pathlib import Path

__all__ = ["HERE", "RECORD", "add_to_record", "interval", "keep_record", "problems_of_record", "read", "record", "record_path"]

HERE = Path(__file__).resolve().parent
RECORD = {
    "experiment": str,
    "mode": str,
    "date": str | None,
    "device": str,
    "versions": dict,
    "settings": dict,
    "seeds": list,
    "interval": str | None,
    "results": dict | list,
}
"""What every record has, in this order: the script, "full" or "small", when and where it ran, with which versions, settings and
seeds, what its intervals are (None if it has only the values of each run), and what was found. The date is None in records
from before dates were kept. A record may say more, such as `what` was measured, its `prediction`, `null_model` and `seconds`."""


def read(name: str, characters: int | None = None) -> str:
    """The text `name`: "austen" (six novels) or "shakespeare" (38 plays), or its first `characters`.

    Raises:
        FileNotFoundError: if there is no such text; the message names those there are.
    """
    path = HERE / f"{name}.txt.xz"
    if not path.exists():
        there = ", ".join(sorted(p.name.removesuffix(".txt.xz") for p in HERE.glob("*.txt.xz")))
        raise FileNotFoundError(f"no text {name!r} in course/data; there are: {there}")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read(-1 if characters is None else characters)


def record_path(stem: str, mode: str = "full", root: Path = HERE.parents[1]) -> Path:
    """Where the record of `experiments/<stem>.py` is: in the course for a full run, in `build/` for a small one."""
    return root / ("course/data/records" if mode == "full" else "build/records") / f"{stem}.json"


def record(stem: str) -> dict:
    """What `experiments/<stem>.py` measured, with the keys of `RECORD`.

    Raises:
        FileNotFoundError: if the experiment has no record; the message says how to make one.
    """
    path = record_path(stem)
    if not path.exists():
        raise FileNotFoundError(f"no record of {stem}: run python experiments/{stem}.py")
    return json.loads(path.read_text(encoding="utf-8"))


def keep_record(
    stem: str,
    results: dict | list,
    *,
    settings: dict,
    seeds: Iterable[int],
    interval: str | None,
    device: str = "cpu",
    small: bool = False,
    packages: tuple[str, ...] = ("torch",),
    **about,
) -> Path:
    """Write what `experiments/<stem>.py` measured, with the date, the machine and the versions.

    Args:
        stem: the script's name.
        results: what was found, with the value of every seed.
        settings: all that a run depends on but its seed.
        seeds: of the runs.
        interval: in words, what the intervals among the results are; None if there are none.
        device: what computed, by the name that torch has for it or as a `torch.device`.
        small: whether it was run with `--small`; such a record does not replace the course's own.
        packages: those whose versions matter.
        **about: what else a reader should know, such as `what`, `prediction`, `null_model`.

    Returns:
        The path that was written, see `record_path`.

    Raises:
        ValueError: if a part has the wrong type, or there is no seed.
    """
    mode = "small" if small else "full"
    kept = about | {
        "experiment": f"experiments/{stem}.py",
        "mode": mode,
        "date": date.today().isoformat(),
        "device": _name_of(str(device)),
        "versions": {"python": platform.python_version()} | {name: metadata.version(name) for name in packages},
        "settings": settings,
        "seeds": list(seeds),
        "interval": interval,
        "results": results,
    }
    kept = {name: kept[name] for name in [*RECORD, *about]}
    if told := problems_of_record(stem, kept):
        raise ValueError("; ".join(told))
    path = record_path(stem, mode)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, kept)
    return path


def add_to_record(stem: str, small: bool = False, **results) -> Path:
    """Put some of the results into the record that is there, and leave the others; the path that was written.

    Raises:
        FileNotFoundError: if there is no record yet.
    """
    path = record_path(stem, "small" if small else "full")
    if not path.exists():
        raise FileNotFoundError(f"no record of {stem} to add to: run python experiments/{stem}.py first")
    kept = json.loads(path.read_text(encoding="utf-8"))
    _write(path, kept | {"results": kept["results"] | results})
    return path


def _write(path: Path, kept: dict) -> None:
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _name_of(device: str) -> str:
    import torch

    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {'one thread' if threads == 1 else f'{threads} threads'}" if device == "cpu" else device


def problems_of_record(stem: str, record: dict) -> list[str]:
    """What is missing in a record or of the wrong type, one sentence each."""
    told = [f"the record {stem} has no {name}" for name in RECORD if name not in record]
    wrong = [name for name, kind in RECORD.items() if name in record and not isinstance(record[name], kind)]
    told += [f"the record {stem} says its {name} as {type(record[name]).__name__}" for name in wrong]
    if record.get("seeds") == []:
        told.append(f"the record {stem} names no seed")
    return told


def interval(values: Iterable[float], digits: int | None = None) -> tuple[float, float]:
    """Mean and half width of the 95% interval of the mean, by Student's t: t s/√n, with n − 1 degrees of freedom.

    Args:
        values: one of each run, at least two; a list, an array or a tensor (n,).
        digits: to round both to, after the point.

    Raises:
        ValueError: if there are fewer than two values, or one is not finite.
    """
    from scipy.special import stdtrit

    values = [float(x) for x in values]
    n = len(values)
    if n < 2 or not all(map(math.isfinite, values)):
        raise ValueError(f"an interval takes two finite values or more, got {values}")
    mean = math.fsum(values) / n
    s = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n - 1))
    half = float(stdtrit(n - 1, 0.975)) * s / math.sqrt(n)
    return (mean, half) if digits is None else (round(mean, digits), round(half, digits))
