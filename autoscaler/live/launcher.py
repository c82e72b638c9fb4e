"""Replicas as operating system processes: start, watch, signal, and find again after a restart of the autoscaler."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from contracts.processes import how_it_ended, identity, last_log_line, start_module
from contracts.validation import UNDECODABLE


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended."""

    how: str
    clean: bool
    """By itself, with status 0; or unknown."""
    known: bool = True
    """Somebody has seen the exit status."""


class ReplicaProcess:
    """One process, running or ended.

    child: where this autoscaler started it, and its exit status is ours to collect. Of one that an earlier autoscaler
    started only its presence can be seen.
    """

    def __init__(self, pid: int, who: str, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self.who = who
        """Its identity, see contracts.processes."""
        self._child = child

    def exit(self) -> Exit | None:
        """Return how it ended; None while it runs."""
        if self._child is None:
            if identity(self.pid) == self.who:
                return None
            return Exit("gone; exit status unknown, because an earlier autoscaler started it", clean=True, known=False)
        status = self._child.poll()
        if status is None:
            return None
        return Exit(how_it_ended(status), clean=status == 0)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when it has ended, and no later process of that pid is hit."""
        if self._child is not None:
            self._child.send_signal(number)
        elif identity(self.pid) == self.who:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class PidFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a running replica: STATE_DIR/replicas/<name>.json."""

    pid: int
    who: str
    """Its identity: tells it from a later process with the same pid."""
    incarnation: str = ""
    """Empty until the replica has reported itself."""


class ProcessLauncher:
    """Starts `python -m <module>` once for each replica, each in a session of its own with its own log file."""

    def __init__(self, state_dir: Path, module: str, environ: Mapping[str, str]) -> None:
        self._files = state_dir / "replicas"
        self._logs = state_dir / "logs"
        self._module = module
        self._environ = dict(environ)
        self._files.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)

    def start(self, name: str) -> ReplicaProcess:
        """Start the replica `name`. Raises OSError when the system cannot; then no process runs."""
        child = start_module(self._module, self._environ | {"TAILPACK_REPLICA": name}, self._log(name))
        process = ReplicaProcess(child.pid, identity(child.pid), child)
        try:
            self.remember(name, process)
        except OSError:  # a full disk: a replica of which nobody knows would serve under a name that another one gets
            child.kill()
            child.wait()
            raise
        return process

    def remember(self, name: str, process: ReplicaProcess, incarnation: str = "") -> None:
        """Write the pid file; a reader never sees half of it."""
        entry = PidFile(pid=process.pid, who=process.who, incarnation=incarnation)
        path = self._file(name)
        path.with_suffix(".tmp").write_bytes(msgspec.json.encode(entry))
        path.with_suffix(".tmp").replace(path)

    def forget(self, name: str) -> None:
        """Remove the pid file of a replica that has gone."""
        self._file(name).unlink(missing_ok=True)

    def left_behind(self) -> Iterator[tuple[str, PidFile, ReplicaProcess | None]]:
        """Yield what an earlier autoscaler left: name, pid file, and the process if that very one still runs."""
        for name, entry, process in remembered(self._files.parent):
            yield name, entry, ReplicaProcess(entry.pid, entry.who) if process else None

    def last_log_line(self, name: str) -> str:
        """Return the last line that the replica wrote to its log; empty where there is none."""
        return last_log_line(self._log(name))

    def _file(self, name: str) -> Path:
        return self._files / f"{name}.json"

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def remembered(state_dir: Path) -> Iterator[tuple[str, PidFile, psutil.Process | None]]:
    """Yield name, pid file and process of each replica that `state_dir` tells of; None where that process has ended.

    A file that is gone or unreadable is left out: its replica is starting or leaving at this moment.
    """
    for path in sorted((state_dir / "replicas").glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=PidFile)
        except (OSError, *UNDECODABLE):
            continue
        yield path.stem, entry, _same_process(entry)


def stop_remembered(state_dir: Path, patience_s: float) -> tuple[list[str], list[str]]:
    """Stop every replica that `state_dir` tells of; return the names of those that stopped, and of those killed.

    Each commits, leaves the group and ends within `patience_s`, or is killed. The pid file of one that was killed
    stays: the next autoscaler tells the group that this member is dead.
    """
    running = {name: process for name, _, process in remembered(state_dir) if process is not None}
    for process in running.values():
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    left = psutil.wait_procs(running.values(), timeout=patience_s)[1]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=patience_s)
    stopped = [name for name, process in running.items() if process not in left]
    for name in stopped:
        (state_dir / "replicas" / f"{name}.json").unlink(missing_ok=True)
    return stopped, [name for name in running if name not in stopped]


def _same_process(entry: PidFile) -> psutil.Process | None:
    if not entry.who or identity(entry.pid) != entry.who:
        return None
    try:
        return psutil.Process(entry.pid)
    except psutil.NoSuchProcess:
        return None
