"""`python -m report.spark TASK`: report with Spark; write Parquet files, result.json and report.html."""

import sys
from pathlib import Path

import msgspec

from contracts.validation import InvalidSettingsError
from report import ReportError
from report.page import page
from report.result import Result
from report.run_info import RUN_FILE, load_run, run_of_files
from report.spark import Task
from report.spark.job import report_files, report_run


def main() -> int:
    """Return 0 after success, 1 if the report cannot be made. The last line on standard error is then the reason."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    folder = Path(task.folder)
    try:
        try:
            result = _reported(task, folder)
        finally:
            if session := sys.modules.get("report.spark.session"):
                session.end_jvm()
        page.write(result, folder / page.PAGE_FILE)
    except (ReportError, InvalidSettingsError) as wrong:
        problems = wrong.problems
    except OSError as refused:
        problems = [f"{refused.filename or folder}: cannot be written ({refused.strerror})"]
    else:
        return 0
    sys.stderr.writelines(f"report: {problem}\n" for problem in problems)
    return 1


def _reported(task: Task, folder: Path) -> Result:
    if task.events is None:
        return report_run(folder, task.master)
    slo = task.latency_target_s or 0.0, task.percentile or 0.0  # of a run, run.json has them
    run = load_run(folder) if (folder / RUN_FILE).exists() else run_of_files(task.events, *slo, task.command)
    return report_files(folder, run, task.master, task.events, task.journal)


if __name__ == "__main__":
    sys.exit(main())
