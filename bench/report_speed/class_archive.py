"""`python -m bench.report_speed.class_archive`: report on a made-up run, and archive the classes that Spark loaded."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.report_speed.made_up import make_up
from report.spark.class_archive import ARCHIVE
from report.spark.errors import ReportError
from report.spark.job import Cluster, report_run
from report.spark.session import LOG_FILE, end_jvm, open_session

EVENTS: Final = 20_000
"""Enough for late events of several causes."""
MASTER: Final = "local[2]"
END_DEADLINE_S: Final = 300.0
"""The JVM writes the archive at its end, in some ten seconds."""


def make(archive: Path) -> None:
    """Write `archive`, 170 MB; what was there stays until it is whole. Raises ReportError, OSError."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        folder, fresh, log = Path(scratch, "run"), Path(scratch, archive.name), Path(scratch, LOG_FILE)
        folder.mkdir()
        make_up(folder, EVENTS, 1)
        try:
            open_session(MASTER, (), log, short=True, archive_to=fresh)
            report_run(folder, Cluster(MASTER, ()))
        finally:
            end_jvm(END_DEADLINE_S)
        if not fresh.is_file():
            raise ReportError(f"Java wrote none ({_last_line(log)})")
        fresh.replace(archive)


def _last_line(log: Path) -> str:
    return (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it said nothing"])[-1]


def main() -> int:
    """Return 0 when the archive was made, 1 with a line on standard error when not, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m bench.report_speed.class_archive", description=__doc__)
    parser.add_argument("archive", type=Path, nargs="?", default=ARCHIVE, help=f"file to write, else {ARCHIVE}")
    archive = parser.parse_args().archive
    try:
        make(archive)
    except (ReportError, OSError) as wrong:
        sys.stderr.write(f"no class archive at {archive}: {str(wrong).splitlines()[0]}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
