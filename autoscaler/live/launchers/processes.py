"""Replicas as operating-system processes: start, observe and signal them, and find them after a restart."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import msgspec
import psutil

from autoscaler.live.launcher import Exit, Orphan
from contracts.children import describe_exit, last_log_line, limit_log, start
from contracts.fields import Count
from contracts.progress import Progress
from contracts.validation import DECODE_ERRORS


def process_identity(pid: int) -> str:
    """Return an id that no other process has (boot and start tick); empty if no process with this pid runs."""
    with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return ""
        if not psutil.LINUX:
            return f"{process.create_time():.6f}"
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return f"{_boot()}/{stat.rpartition(')')[2].split()[19]}"  # the name before it may contain spaces
    return ""


def running(pid: int, identity: str) -> psutil.Process | None:
    """Return the process with this pid; None if it has ended, or if another process has its pid now."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid) if identity and process_identity(pid) == identity else None
    return None


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class ReplicaProcess:
    """One process, running or exited.

    child: the process; None if an earlier autoscaler started it. Then its exit status cannot be read.
    """

    pending_reason = address = ""

    def __init__(self, pid: int, identity: str, log: Path, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid, self._log = pid, log
        self.identity = identity
        """Identity of the process, see process_identity; empty: it did not run."""
        self._child = child

    @property
    def description(self) -> str:
        """The pid of the process."""
        return f"pid {self.pid}"

    def exit(self) -> Exit | None:
        """Return how the process exited; None while it runs. Each call also limits the size of its log."""
        limit_log(self._log)
        if self._child is None:
            unknown = "exited; status unknown, because an earlier autoscaler started it"
            return None if self._runs() else Exit(unknown, is_clean=True, is_status_known=False)
        status = self._child.poll()
        return None if status is None else Exit(describe_exit(status), is_clean=status == 0)

    def is_source_of(self, report: Progress) -> bool:
        """Compare the pids. An earlier process may have had the same pid, so the scaler also compares incarnations."""
        return report.pid == self.pid

    def terminate(self) -> None:
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
        return bool(self.identity) and process_identity(self.pid) == self.identity


class PidFile(msgspec.Struct, frozen=True, kw_only=True):
    """Pid file of a running replica: STATE_DIR/replicas/<name>.json."""

    pid: Count
    identity: str = msgspec.field(name="who")
    """Identity of the process, which distinguishes it from a later process with the same pid."""
    incarnation: str = ""


class ProcessLauncher:
    """Starts a command for each replica, in its own session and with its own log file.

    command, environ: not needed if the launcher only finds the processes of an earlier launcher and starts none.
    """

    problem = ""
    wanted = 0

    def __init__(self, state_dir: Path, command: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> None:
        self._state_dir, self._files, self._logs = state_dir, state_dir / "replicas", state_dir / "logs"
        self._command, self._environ = command, dict(environ or {})
        self._known: dict[str, ReplicaProcess] = {}
        self._numbers = count()
        self._files.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)

    def start(self, name: str) -> ReplicaProcess:
        """Start the replica `name`. Raises OSError on failure. Then no process runs."""
        own = {"TAILPACK_REPLICA": name, "TAILPACK_REPLICA_NUMBER": str(next(self._numbers))}
        child = start(self._command, self._environ | own, self._log(name))
        process = self._known[name] = ReplicaProcess(child.pid, process_identity(child.pid), self._log(name), child)
        try:
            self.save_incarnation(name, "")
        except OSError:  # disk full: without a pid file, a later autoscaler would start a second replica of this name
            child.kill()
            child.wait()
            raise
        return process

    def save_incarnation(self, name: str, incarnation: str) -> None:
        """Write the pid file atomically."""
        process = self._known[name]
        entry = PidFile(pid=process.pid, identity=process.identity, incarnation=incarnation)
        path = self._file(name)
        path.with_suffix(".tmp").write_bytes(msgspec.json.encode(entry))
        path.with_suffix(".tmp").replace(path)

    def forget(self, name: str) -> None:
        """Remove the pid file of a replica that has exited."""
        self._known.pop(name, None)
        self._file(name).unlink(missing_ok=True)

    def find_orphans(self) -> Iterator[Orphan]:
        """Yield the replicas with pid files of an earlier autoscaler."""
        for name, entry, _ in read_pid_files(self._state_dir):
            process = self._known[name] = ReplicaProcess(entry.pid, entry.identity, self._log(name))
            yield Orphan(name, process, entry.incarnation)

    def last_log_line(self, name: str) -> str:
        """Return the last line of the replica's log; empty: none."""
        return last_log_line(self._log(name))

    def close(self) -> None:
        """Do nothing: no work is done in the background."""

    def _file(self, name: str) -> Path:
        return self._files / f"{name}.json"

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def read_pid_files(state_dir: Path) -> Iterator[tuple[str, PidFile, psutil.Process | None]]:
    """Yield name, pid file and process of each replica in `state_dir`. Process None: it has exited.

    Unreadable files are skipped, because their replicas are starting or leaving.
    """
    for path in sorted((state_dir / "replicas").glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=PidFile)
        except (OSError, *DECODE_ERRORS):
            continue
        yield path.stem, entry, running(entry.pid, entry.identity)
