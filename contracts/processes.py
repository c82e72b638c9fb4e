"""Processes that one of ours starts: each in a session of its own, with its output in a log of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

import psutil

STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOG_TAIL_BYTES: Final = 4096


def python_module(module: str) -> list[str]:
    """Return the command of a module in the Python that runs this one."""
    return [sys.executable, "-m", module]


def start(command: Sequence[str], environ: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a command. A Ctrl-C in the terminal reaches its starter alone. Raises OSError."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def identity(pid: int) -> str:
    """Return what tells a process from every other of that pid, earlier or later, however the wall clock is set.

    The boot of the system and the tick at which it started. Empty: there is no such process, or it has ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else _identity_elsewhere(pid)
    fields = stat[stat.rindex(b")") + 2 :].split()  # a name may hold anything, so count from its end: the third field
    return "" if fields[0] in (b"Z", b"X") else f"{_boot()}/{fields[19].decode()}"


def _identity_elsewhere(pid: int) -> str:
    """Return the same where there is no /proc: macOS keeps the time at which a process started as it was then."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.6f}"
    return ""


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def wait_for_end(process: "subprocess.Popen[bytes]", deadline_s: float) -> None:
    """Wait until it is gone; by force after `deadline_s`."""
    try:
        process.wait(max(0.0, deadline_s))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def how_it_ended(status: int) -> str:
    """Return an exit status in words."""
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


def last_log_line(log: Path) -> str:
    """Return the last line of a log; empty where there is none."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ""


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Note signals that ask to stop, in the list that is yielded, and do nothing else about them. Main thread only.

    Children started inside get the default handlers, as after any exec.
    """
    noted: list[int] = []
    before = {number: signal.signal(number, lambda number, _: noted.append(number)) for number in STOPPING}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals that ask to stop until the block is done; then the first of them is delivered. Main thread only."""
    noted: list[int] = []
    try:
        with signals_noted() as noted:
            yield
    finally:
        if noted:
            signal.raise_signal(signal.Signals(noted[0]))
