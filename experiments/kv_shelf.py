"""What stays of one text's cache at four budgets, by method, and what SmolLM2 then answers: the data of the chapter's figure to play with.

    python experiments/kv_shelf.py            # a CPU, a minute or two; needs the trained model, `python -m course.pretrained smollm2-135m`
    python experiments/kv_shelf.py --small    # a short text

One text with a passkey in it, read with the whole cache, which is then cut once and asked: an example to look at, from which nothing
is concluded. Writes course/data/records/kv_shelf.json.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, kv_compression  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a short text, to build/records")
    small = parser.parse_args().small
    T, budgets = (96, (0.25,)) if small else (256, (0.5, 0.25, 0.125, 0.0625))
    told = kv_compression.shelf(T, budgets)
    settings = {"model": "smollm2-135m", "T": T, "budgets": budgets, "methods": kv_compression.SHELF}
    print(data.keep_record("kv_shelf", told, settings=settings, seeds=[0], interval=None, small=small))


if __name__ == "__main__":
    main()
