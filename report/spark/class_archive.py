"""Spark's classes, read and checked once: a JVM that maps them from an archive spares a fifth of a short report."""

import sys
from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(sys.prefix, "share", "tailpack", "spark-classes.jsa")
"""Inside the environment, whose jars it fits and with which it goes away."""
TO_STDERR: Final = "-Xlog:disable -Xlog:all=warning:stderr"
"""By default the JVM warns on standard output, which is the command's answer."""


def options(archive: Path = ARCHIVE) -> str:
    """Return the JVM's options that use `archive`; none while there is no such file.

    A JVM that it does not fit (another Java, other jars) starts without it.
    """
    return f'{TO_STDERR} -XX:SharedArchiveFile="{archive}"' if archive.is_file() else ""


def making(archive: Path) -> str:
    """Return the JVM's options that write `archive` when it ends, with every class it then has."""
    return f'{TO_STDERR} -XX:ArchiveClassesAtExit="{archive}"'
