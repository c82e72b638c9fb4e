"""The report of a run, by Spark: read → measure → explain → write."""

import re
from typing import Final

CLASS: Final = re.compile(r"^(Caused by: )?([\w$.]+(Exception|Error): )?")
"""How a line of Java begins that names a cause."""


class ReportError(Exception):
    """There can be no report. The message is one line: what is wrong, where, and what to do."""


def cause(failed: Exception) -> str:
    """Return the innermost cause that Spark names, in one line, without the names of its classes."""
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    said = causes[-1] if causes else lines[0] if lines else type(failed).__name__
    return CLASS.sub("", said).partition(" SQLSTATE")[0].rstrip(".")[:300]
