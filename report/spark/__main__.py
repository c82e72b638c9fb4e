"""`python -m report.spark TASK`: report with Spark; write Parquet files, result.json and report.html."""

import sys
from pathlib import Path
from typing import Final

import msgspec

from contracts.validation import InvalidSettingsError
from report import ReportError
from report.page import page
from report.result import Result
from report.run_info import RUN_FILE, load_run, run_of_files
from report.spark import Task
from report.spark.job import report_files, report_run

USUAL_SHARE: Final = 0.999


def main() -> int:
    """Return 0 after success, 1 if the report cannot be made, 2 for invalid settings."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    folder = Path(task.folder)
    try:
        try:
            result = _reported(task, folder)
        finally:
            if session := sys.modules.get("report.spark.session"):
                session.end_jvm()
        page.write(result, folder / page.PAGE_FILE)
    except ReportError as wrong:
        messages, status = [str(wrong)], 1
    except InvalidSettingsError as wrong:
        messages, status = list(wrong.problems), 2
    except OSError as refused:
        messages, status = [f"{refused.filename or folder}: cannot be written ({refused.strerror})"], 1
    else:
        sys.stdout.write(result.verdict + "\n")
        return 0
    sys.stderr.writelines(f"report: {message}\n" for message in messages)
    return status


def _reported(task: Task, folder: Path) -> Result:
    if task.events is None:
        return report_run(folder, task.master)
    slo = task.latency_target_s or 0.0, USUAL_SHARE if task.percentile is None else task.percentile
    run = load_run(folder) if (folder / RUN_FILE).exists() else run_of_files(task.events, *slo, task.command)
    return report_files(folder, run, task.master, task.events, task.journal)


if __name__ == "__main__":
    sys.exit(main())
