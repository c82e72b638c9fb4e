"""`python -m bench.report_speed.once HOW RUN_DIR ANSWER`: answer once, in a process of its own; say what it took."""

import argparse
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
import psutil

from bench.report_speed.answer import Answer, Question, Way
from report.run_info import RunInfo
from report.spark.errors import ReportError

ANSWERS: Final = {
    Way.SPARK: ("bench.report_speed.by_spark", "with_causes", "pyspark"),
    Way.WITHOUT_CAUSES: ("bench.report_speed.by_spark", "without_causes", "pyspark"),
    Way.WHOLE: ("bench.report_speed.by_spark", "whole", "pyspark"),
    Way.PANDAS: ("bench.report_speed.by_pandas", "answer", "pandas"),
    Way.DUCKDB: ("bench.report_speed.by_duckdb", "answer", "duckdb"),
}
"""Way → module and function that answer, and the package whose version matters. Only that one is imported."""
EXPECTED: Final = (ReportError, OSError, MemoryError)
ENGINES: Final = frozenset({"pyspark", "py4j", "duckdb", "_duckdb"})
"""Packages whose errors are about the run or the machine: too little memory, a full disk."""


def main() -> int:
    """Return 0 when the answer was written, 1 with a line on standard error when there is none."""
    parser = argparse.ArgumentParser(prog="python -m bench.report_speed.once", description=__doc__)
    parser.add_argument("how", type=Way, choices=Way)
    parser.add_argument("folder", type=Path, metavar="RUN_DIR")
    parser.add_argument("answer", type=Path, metavar="ANSWER", help="file that takes the answer")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--jars", type=Path, action="append", default=[])
    words = parser.parse_args()
    module, function, package = ANSWERS[words.how]
    try:
        question = Question(
            folder=words.folder,
            run=RunInfo.load(words.folder),
            scratch=words.answer.parent,
            master=words.master,
            jars=tuple(words.jars),
        )
        found: Answer = getattr(import_module(module), function)(question)
        took = msgspec.structs.replace(found, peak_rss_bytes=peak_rss_bytes(), version=version(package))
        took.save(words.answer)
    except Exception as wrong:
        if not isinstance(wrong, EXPECTED) and type(wrong).__module__.partition(".")[0] not in ENGINES:
            raise
        lines = str(wrong).splitlines() or ["not enough memory"]
        sys.stderr.write(f"answer of {words.how}: {lines[0]}\n")
        return 1
    finally:
        if package == "pyspark":
            from report.spark.session import end_jvm  # noqa: PLC0415  Spark only where it answers

            end_jvm()
    return 0


def peak_rss_bytes() -> int:
    """Return the most memory that this process and each of its children ever held, added up."""
    own = psutil.Process()
    return sum(_peak_rss_bytes(one) for one in (own, *own.children(recursive=True)))


def _peak_rss_bytes(process: psutil.Process) -> int:
    """Return the most that a process ever held; where the system does not know (not Linux), what it holds."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return int(process.memory_info().rss)


if __name__ == "__main__":
    sys.exit(main())
