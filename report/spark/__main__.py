"""`python -m report.spark RUN_DIR`: report on a run by Spark; write its Parquet files, result.json and report.html."""

import argparse
import sys
from pathlib import Path

from contracts.validation import InvalidSettingsError
from report import ReportError
from report.page import page
from report.result import Result
from report.run_info import RUN_FILE
from report.spark.job import Cluster, Files, report_files, report_run
from report.spark.session import end_jvm


def main() -> int:
    """Return 0 at the end, 1 when there can be no report, 2 for wrong arguments."""
    arguments = _parser().parse_args()
    cluster = Cluster(master=arguments.master, jars=arguments.jars)
    try:
        try:
            result = _reported(arguments, cluster)
        finally:
            end_jvm()
        page.write(result, arguments.folder / page.PAGE_FILE)
    except ReportError as wrong:
        said, status = [str(wrong)], 1
    except InvalidSettingsError as wrong:
        said, status = list(wrong.problems), 2
    except OSError as refused:
        said, status = [f"{refused.filename or arguments.folder}: cannot be written ({refused.strerror})"], 1
    else:
        sys.stdout.write(result.verdict + "\n")
        return 0
    sys.stderr.writelines(f"report: {one}\n" for one in said)
    return status


def _reported(arguments: argparse.Namespace, cluster: Cluster) -> Result:
    folder, files = arguments.folder, Files(arguments.events, arguments.journal) if arguments.events else None
    if files is None or (folder / RUN_FILE).exists():
        return report_run(folder, cluster, files=files)
    promise = {"latency_target_s": arguments.latency_target_s, "percentile": arguments.percentile}
    return report_files(folder, files, cluster, **promise, command=arguments.command)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m report.spark", description=__doc__)
    add = parser.add_argument
    add("folder", type=Path, metavar="RUN_DIR", help="folder with run.json, or where the result goes")
    add("--master", default="local[2]", help="Spark master (default: %(default)s)")
    add("--jars", type=Path, action="append", default=[], help="folder of Spark's Kafka connector")
    add("--events", metavar="URI", help="Parquet with the events of the run, or without run.json of a stranger")
    add("--journal", metavar="URI", help="with --events (default: journal.parquet beside them, if it is there)")
    add("--command", default="", help="with --events and no run.json: what the report says it was made by")
    add("--latency-target-s", type=float, default=0.5, help="without run.json (default: %(default)s)")
    add("--percentile", type=float, default=0.999, help="without run.json: share promised (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
