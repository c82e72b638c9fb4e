"""Spark: reads topics and files from anywhere, and hands the rows of large runs out to where they are counted."""

import re
from typing import Final

CLASS_PREFIX: Final = re.compile(r"^(Caused by: )?([\w$.]+(Exception|Error): )?")
"""How a line of Java begins that names a cause."""


def cause(failed: Exception) -> str:
    """Return the innermost cause that Spark names, in one line, without the names of its classes."""
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()] or [type(failed).__name__]
    said = [lines[0], *(line for line in lines if line.startswith("Caused by:"))][-1]
    return CLASS_PREFIX.sub("", said).partition(" SQLSTATE")[0].rstrip(".")[:300]
