"""`python -m tailpack` runs the `tailpack` command. It handles Ctrl-C even while modules are imported."""

import signal
import sys
from typing import Never

from contracts.children import STOP_SIGNALS
from tailpack.errors import INTERRUPTED, STOPPED


def main() -> None:
    """Load the command line and run it."""
    for number in STOP_SIGNALS:
        signal.signal(number, _end)  # until the command line installs its own handlers
    from tailpack.cli.main import main as run  # noqa: PLC0415  takes most of a second

    run()


def _end(*_: object) -> Never:
    sys.stderr.write(f"{STOPPED}\n")
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
