"""Replicas as operating system processes: start, watch, signal, and find again after a restart of the autoscaler."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec
import psutil

from autoscaler.live.launcher import Exit, Orphan
from contracts.children import describe_exit, last_log_line, process_identity, start
from contracts.progress import Progress
from contracts.validation import DECODE_ERRORS


class ReplicaProcess:
    """One process, running or ended.

    child: this autoscaler started it, so it collects the exit status. Of a process that an earlier autoscaler started
    only the presence can be seen.
    """

    pending = ""

    def __init__(self, pid: int, who: str, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self.who = who
        """Its identity, see contracts.children; empty: of none that runs."""
        self._child = child

    @property
    def where(self) -> str:
        """Its pid."""
        return f"pid {self.pid}"

    def exit(self) -> Exit | None:
        """Return how it ended; None while it runs."""
        if self._child is None:
            how = "gone; exit status unknown, because an earlier autoscaler started it"
            return None if self._runs() else Exit(how, clean=True, known=False)
        status = self._child.poll()
        return None if status is None else Exit(describe_exit(status), clean=status == 0)

    def wrote(self, report: Progress) -> bool:
        """Tell it by its pid; the scaler knows earlier ones of that pid by their incarnation."""
        return report.pid == self.pid

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            self._child.send_signal(number)
        elif self._runs():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _runs(self) -> bool:
        return bool(self.who) and process_identity(self.pid) == self.who


class PidFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a running replica: STATE_DIR/replicas/<name>.json."""

    pid: int
    who: str
    """Its identity: tells it from a later process with the same pid."""
    incarnation: str = ""


class ProcessLauncher:
    """Starts a command for each replica, in a session of its own with its own log file.

    Only to find the processes that others have started, command and environ are not needed.
    """

    trouble = ""
    wanted = 0

    def __init__(self, state_dir: Path, command: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> None:
        self._state_dir, self._files, self._logs = state_dir, state_dir / "replicas", state_dir / "logs"
        self._command, self._environ = command, dict(environ or {})
        self._known: dict[str, ReplicaProcess] = {}
        self._numbers = count()
        self._files.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)

    def start(self, name: str) -> ReplicaProcess:
        """Start the replica `name`. Raises OSError when the system cannot; then no process runs."""
        own = {"TAILPACK_REPLICA": name, "TAILPACK_REPLICA_NUMBER": str(next(self._numbers))}
        child = start(self._command, self._environ | own, self._log(name))
        process = self._known[name] = ReplicaProcess(child.pid, process_identity(child.pid), child)
        try:
            self.remember(name, "")
        except OSError:  # a full disk: an unknown replica would serve under a name that another one gets
            child.kill()
            child.wait()
            raise
        return process

    def remember(self, name: str, incarnation: str) -> None:
        """Write the pid file; a reader never sees half of it."""
        process = self._known[name]
        entry = PidFile(pid=process.pid, who=process.who, incarnation=incarnation)
        path = self._file(name)
        path.with_suffix(".tmp").write_bytes(msgspec.json.encode(entry))
        path.with_suffix(".tmp").replace(path)

    def forget(self, name: str) -> None:
        """Remove the pid file of a replica that has gone."""
        self._known.pop(name, None)
        self._file(name).unlink(missing_ok=True)

    def find_orphans(self) -> Iterator[Orphan]:
        """Yield what an earlier autoscaler left."""
        for name, entry, _ in read_pid_files(self._state_dir):
            process = self._known[name] = ReplicaProcess(entry.pid, entry.who)
            yield Orphan(name, process, entry.incarnation)

    def last_log_line(self, name: str) -> str:
        """Return the last line that the replica wrote to its log; empty where there is none."""
        return last_log_line(self._log(name))

    def close(self) -> None:
        """Nothing is done in the background."""

    def _file(self, name: str) -> Path:
        return self._files / f"{name}.json"

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def read_pid_files(state_dir: Path) -> Iterator[tuple[str, PidFile, psutil.Process | None]]:
    """Yield name, pid file and process of each replica that `state_dir` tells of; None where that process has ended.

    A file that is gone or unreadable is left out: its replica is starting or leaving at this moment.
    """
    for path in sorted((state_dir / "replicas").glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=PidFile)
        except (OSError, *DECODE_ERRORS):
            continue
        yield path.stem, entry, _same_process(entry)


def _same_process(entry: PidFile) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(entry.pid) if entry.who and process_identity(entry.pid) == entry.who else None
    return None
