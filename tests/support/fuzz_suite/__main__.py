"""Feed every parser of a record, a page or a file with hostile input: `make fuzz S=60 SEED=1 TARGET=scenario`.

An input may be refused by the errors that a parser documents. Any other exception, and any value that it may not
return, is a crash. Exit status 1 after a crash; the seed repeats it.
"""

import argparse
import faulthandler
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fuzz_suite.control import Control
from fuzz_suite.events import Events
from fuzz_suite.files import Files
from fuzz_suite.pages import Pages

KINDS: Final = (Control, Events, Pages, Files)
TARGETS: Final = {name: kind for kind in KINDS for name in vars(kind) if not name.startswith("_")}
"""Name → class. Each method without an underscore handles one input, or raises."""
ROOT: Final = Path(__file__).parents[3]


def fuzz(target: str, seed: int, folder: Path, goes_on: Callable[[int], bool]) -> tuple[int, Counter[str]]:
    """Return the number of inputs, and exception and place → crashes."""
    handle, crashes, inputs = getattr(TARGETS[target](seed, folder), target), Counter[str](), 0
    while goes_on(inputs):
        inputs += 1
        try:
            handle()
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = [one for one in frames if one.filename.startswith(str(ROOT)) and ".venv" not in one.filename][-1]
            where = f"{Path(place.filename).relative_to(ROOT)}:{place.lineno}"
            crashes[f"{type(error).__name__} at {where}: {str(error)[:100]!r}"] += 1
    return inputs, crashes


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz_suite", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each target (60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the inputs (1)")
    parser.add_argument("targets", nargs="*", help="some of the targets; none: all")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    faulthandler.enable()
    crashed = 0
    for target in given.targets or TARGETS:
        with tempfile.TemporaryDirectory(prefix="tailpack-fuzz-") as folder:
            until_s = time.monotonic() + given.seconds
            inputs, crashes = fuzz(target, given.seed, Path(folder), lambda _, end=until_s: time.monotonic() < end)
        sys.stdout.write(f"{target}: {inputs} inputs, {crashes.total()} crashes\n")
        for crash, count in crashes.most_common(8):
            sys.stdout.write(f"    {count} × {crash}\n")
        sys.stdout.flush()
        crashed += crashes.total()
    return int(crashed > 0)


if __name__ == "__main__":
    sys.exit(main())
