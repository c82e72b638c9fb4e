"""`python -m report.spark RUN_DIR`: report with Spark; write Parquet files, result.json and report.html."""

import argparse
import sys
from pathlib import Path

from contracts.validation import InvalidSettingsError
from report import ReportError
from report.page import page
from report.result import Result
from report.run_info import RUN_FILE, load_run, run_of_files
from report.spark.job import report_files, report_run


def main() -> int:
    """Return 0 after success, 1 if the report cannot be made, 2 for invalid arguments."""
    arguments = _parser().parse_args()
    try:
        try:
            result = _reported(arguments)
        finally:
            if session := sys.modules.get("report.spark.session"):
                session.end_jvm()
        page.write(result, arguments.folder / page.PAGE_FILE)
    except ReportError as wrong:
        messages, status = [str(wrong)], 1
    except InvalidSettingsError as wrong:
        messages, status = list(wrong.problems), 2
    except OSError as refused:
        messages, status = [f"{refused.filename or arguments.folder}: cannot be written ({refused.strerror})"], 1
    else:
        sys.stdout.write(result.verdict + "\n")
        return 0
    sys.stderr.writelines(f"report: {message}\n" for message in messages)
    return status


def _reported(arguments: argparse.Namespace) -> Result:
    folder, events = arguments.folder, arguments.events
    if events is None:
        return report_run(folder, arguments.master)
    slo, exists = (arguments.latency_target_s, arguments.percentile), (folder / RUN_FILE).exists()
    run = load_run(folder) if exists else run_of_files(events, *slo, arguments.command)
    return report_files(folder, run, arguments.master, events, arguments.journal)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m report.spark", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of a run, or folder for the result")
    parser.add_argument("--master", default="", help="default: Spark only for large runs, local[2]")
    parser.add_argument("--events", help="path or URI of events outside the folder")
    parser.add_argument("--journal", help="of these events; default: journal.parquet next to them, if it exists")
    parser.add_argument("--command", default="", help="without run.json: origin of the events")
    parser.add_argument("--latency-target-s", type=float, default=0.5, help="without run.json, s")
    parser.add_argument("--percentile", type=float, default=0.999, help="without run.json: share in time")
    return parser


if __name__ == "__main__":
    sys.exit(main())
