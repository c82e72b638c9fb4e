"""Run `tailpack …` as a user does. If it takes too long, all of its processes are ended."""

import subprocess
import sys
from collections.abc import Mapping


def tailpack(
    *arguments: str, deadline_s: float, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Return output and exit status. At the deadline the command is stopped, and it stops its own jobs."""
    command = [sys.executable, "-m", "tailpack", *arguments]
    output = subprocess.PIPE
    with subprocess.Popen(command, env=environ, stdout=output, stderr=output, text=True) as process:
        try:
            output, errors = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
