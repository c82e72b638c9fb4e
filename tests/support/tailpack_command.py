"""Run `tailpack …` as a person would, and leave no process behind when it takes too long."""

import subprocess
import sys
from collections.abc import Mapping


def tailpack(
    *arguments: str, deadline_s: float, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Return what it said and its exit status. At the deadline it is stopped in order, and with it its own jobs."""
    command = [sys.executable, "-m", "tailpack", *arguments]
    output = subprocess.PIPE
    with subprocess.Popen(command, env=environ, stdout=output, stderr=output, text=True) as process:
        try:
            said, complained = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, complained)
