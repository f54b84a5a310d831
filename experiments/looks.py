"""What chapters look at in the trained model, for machines that do not have it: writes course/data/records/looks.json.

python experiments/looks.py
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, looks  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="the same, which is quick, to build/records")
    small = parser.parse_args().small
    found = {name: look() for name, look in looks.LOOKS.items()}
    print(data.keep_record("looks", found, settings={"model": looks.MODEL}, seeds=[0], interval=None, small=small))


if __name__ == "__main__":
    main()
