"""Real processes: what is remembered of them, and how they are found again."""

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from kafka_helpers import wait_for

from autoscaler.live.launcher import PidFile, ProcessLauncher, ReplicaProcess

NAPPER = "import os, sys, time; print('my name is', os.environ['TAILPACK_REPLICA'], flush=True); time.sleep(60)"


class Nursery:
    def __init__(self, folder: Path) -> None:
        (folder / "napper.py").write_text(NAPPER)
        (folder / "failer.py").write_text("import sys; sys.stderr.write('a\\nthe disk is full\\n\\n'); sys.exit(3)")
        self.state = folder / "state"
        self._environ = dict(os.environ) | {"PYTHONPATH": str(folder)}

    def launcher(self, module: str = "napper") -> ProcessLauncher:
        return ProcessLauncher(self.state, module, self._environ)


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    nursery = Nursery(tmp_path)
    yield nursery
    for _, _, process in nursery.launcher().left_behind():
        if process is not None:
            process.signal(signal.SIGKILL)
            wait_for(process.exit, "the napper's end")


def test_a_replica_knows_its_name_and_has_a_log_of_its_own(nursery: Nursery) -> None:
    launcher = nursery.launcher()
    process = launcher.start("payment-3")
    wait_for(lambda: launcher.last_log_line("payment-3") == "my name is payment-3", "its log line")
    assert process.exit() is None
    assert os.getsid(process.pid) == process.pid, "a Ctrl-C in our terminal must not reach it"
    process.signal(signal.SIGTERM)
    end = wait_for(process.exit, "its end")
    assert (end.how, end.clean) == ("killed by SIGTERM", False)


def test_a_failed_start_leaves_status_and_last_words(nursery: Nursery) -> None:
    launcher = nursery.launcher("failer")
    end = wait_for(launcher.start("payment-0").exit, "its end")
    assert (end.how, end.clean) == ("exit status 3", False)
    assert launcher.last_log_line("payment-0") == "the disk is full"
    assert launcher.last_log_line("payment-9") == ""


def test_a_replica_that_cannot_be_written_down_does_not_run(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = nursery.launcher()

    def full(name: str, process: ReplicaProcess, incarnation: str = "") -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(launcher, "remember", full)
    with pytest.raises(OSError, match="No space left"):
        launcher.start("payment-0")
    children = psutil.Process().children()
    assert not [one for one in children if "napper" in one.cmdline()]


def test_the_next_launcher_finds_the_same_process_and_sees_it_end(nursery: Nursery) -> None:
    first = nursery.launcher()
    process = first.start("payment-0")
    first.remember("payment-0", process, "life-1")
    ((name, entry, adopted),) = nursery.launcher().left_behind()
    assert (name, entry.pid, entry.incarnation) == ("payment-0", process.pid, "life-1")
    assert adopted is not None
    assert adopted.exit() is None
    adopted.signal(signal.SIGKILL)
    assert "status unknown" in wait_for(adopted.exit, "its end").how
    adopted.signal(signal.SIGKILL)  # harmless
    wait_for(process.exit, "its collection")


def test_a_later_process_with_the_same_pid_is_somebody_else(nursery: Nursery) -> None:
    launcher = nursery.launcher()
    file = nursery.state / "replicas" / "payment-0.json"
    file.write_bytes(msgspec.json.encode(PidFile(pid=os.getpid(), who="somebody else")))
    ((_, _, process),) = launcher.left_behind()
    assert process is None
    file.write_bytes(b"not json")
    assert list(launcher.left_behind()) == []
    launcher.forget("payment-0")
