"""Reports by Spark: read topics and remote files, and distribute the rows of large runs over workers."""

import re
from typing import Final

import msgspec

CLASS_PREFIX: Final = re.compile(r"^(Caused by: )?([\w$.]+(Exception|Error): )?")
"""Prefix of a line of a Java stack trace that names a cause."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The argument of `python -m report.spark`, as JSON. Its last three fields describe events without run.json."""

    folder: str
    master: str = ""
    events: str | None = None
    journal: str | None = None
    latency_target_s: float | None = None
    percentile: float | None = None
    command: str = ""


def innermost_cause(failed: Exception) -> str:
    """Return the innermost cause of a Spark error in one line, without class names."""
    if refused := re.search(r"ReportError: (.+)", str(failed)):  # raised in a worker
        return refused[1]
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()] or [type(failed).__name__]
    innermost = [lines[0], *(line for line in lines if line.startswith("Caused by:"))][-1]
    return CLASS_PREFIX.sub("", innermost).partition(" SQLSTATE")[0].rstrip(".")[:300]
