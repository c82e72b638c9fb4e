"""Reports by Spark: read topics and remote files, and distribute the rows of large runs over workers."""

import re
from typing import Final

import msgspec

CLASS_PREFIX: Final = re.compile(r"^(Caused by: )?([\w$.]+(Exception|Error): )?")
"""Prefix of a line of a Java stack trace that names a cause."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A report that `python -m report.spark` makes. Its argument is the task as JSON."""

    folder: str
    """Folder of a run, or folder for the result."""
    master: str = ""
    """Spark's master. Empty: Spark on this machine, but only for a large run."""
    events: str | None = None
    """Path or URI of events outside the folder."""
    journal: str | None = None
    """Path or URI of the journal of these events; None: journal.parquet next to them, if it exists."""
    latency_target_s: float | None = None
    """Latency target of events without run.json."""
    percentile: float | None = None
    """Share of events without run.json that must be in time; None: 0.999."""
    command: str = ""
    """Origin of events without run.json."""


def innermost_cause(failed: Exception) -> str:
    """Return the innermost cause of a Spark error in one line, without class names."""
    if refused := re.search(r"ReportError: (.+)", str(failed)):  # raised in a worker
        return refused[1]
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()] or [type(failed).__name__]
    innermost = [lines[0], *(line for line in lines if line.startswith("Caused by:"))][-1]
    return CLASS_PREFIX.sub("", innermost).partition(" SQLSTATE")[0].rstrip(".")[:300]
