"""One report of a run whose events lie in its folder, without Spark: read, count, write."""

from pathlib import Path

from contracts.clock import now_us
from report import ReportError
from report.figures import measure
from report.result import RESULT_FILE, Result
from report.run_info import EVENTS, RUN_FILE, RunInfo
from report.stored import MOST_IN_MEMORY, count, is_whole, load_run, stored_events, stored_journal


def in_memory(master: str) -> int:
    """Return how many events one process counts by itself: none where somebody named a cluster for it."""
    return MOST_IN_MEMORY if master.startswith("local") else 0


def needs_spark(folder: Path, master: str) -> bool:
    """Return whether the run's events must be read from its topics first, or are too many for one process."""
    return not is_whole(folder / EVENTS) or count(folder / EVENTS) > in_memory(master)


def report_stored(folder: Path) -> Result:
    """Report on the run in `folder` and write result.json there. Raises ReportError."""
    run = load_run(folder)
    begun(run, folder)
    try:
        result = measure(run, stored_events(folder), stored_journal(folder), now_us=now_us())
    except ReportError as refused:
        raise ReportError(f"{folder}: {refused}") from refused
    save(result, folder)
    return result


def begun(run: RunInfo, folder: Path) -> None:
    """Raise ReportError for a run whose load never began."""
    if run.started_us is None:
        raise ReportError(
            f"{folder / RUN_FILE}: started_us is missing; the load never began, so there is nothing to report on"
        )


def save(result: Result, folder: Path) -> None:
    """Write folder/result.json. Raises ReportError."""
    try:
        result.save(folder)
    except OSError as refused:
        raise ReportError(f"{folder / RESULT_FILE}: cannot be written ({refused.strerror or refused})") from refused
