"""Starts child processes. Each has its own session and its own log."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_DEADLINE_S: Final = 10.0
LOG_TAIL_BYTES: Final = 4096
MAX_LOG_BYTES: Final = 10_000_000


def python_module(module: str) -> list[str]:
    """Return the command that runs a module in the current Python."""
    return [sys.executable, "-m", module]


def start(command: Sequence[str], environ: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a command whose output is appended to `log`. Ctrl-C in the terminal does not reach it. Raises OSError."""
    limit_log(log)
    with log.open("ab") as out:
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        return subprocess.Popen(command, env=dict(environ), start_new_session=True, **streams)


def limit_log(log: Path) -> None:
    """If the log exceeds MAX_LOG_BYTES, move its content to LOG.1. A running process keeps appending to `log`."""
    with suppress(OSError):
        if log.stat().st_size > MAX_LOG_BYTES:
            shutil.copyfile(log, f"{log}.1")
            os.truncate(log, 0)


def describe_exit(status: int) -> str:
    """Return an exit status as text."""
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


def last_log_line(log: Path) -> str:
    """Return the last line of a log, or an empty text if it has none."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
        return next(filter(None, map(str.strip, reversed(file.read().decode(errors="replace").split("\n")))), "")
    return ""
