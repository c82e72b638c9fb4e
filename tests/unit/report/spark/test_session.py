"""A Java that Spark cannot run on is told in one line with what to do."""

import os
import subprocess
import sys
from pathlib import Path

from report.spark.session import LOG_FILE

START = """
import sys
from pathlib import Path
from report import ReportError
from report.spark import session
try:
    session.open_session("local[1]", (), Path(sys.argv[1]), short=True)
except ReportError as refused:
    print(refused)
"""


def told(home: Path, said: str) -> str:
    """Return what is said where Java, instead of starting, says `said`."""
    binary = home / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    binary.chmod(0o755)
    command = [sys.executable, "-c", START, str(home / LOG_FILE)]
    environ = {**os.environ, "JAVA_HOME": str(home)}
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environ).stdout.strip()


def test_a_java_that_is_too_new(tmp_path: Path) -> None:
    line = told(tmp_path, "java.lang.UnsupportedOperationException: getSubject is not supported")
    assert line == "this Java is too new for Spark: set JAVA_HOME to a Java 17 or 21"
