"""Real processes: what is remembered of them, and how they are found again. The rest is in tests/contract."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from kafka_helpers import wait_for
from launcher_contract import Processes

from autoscaler.live.launchers.processes import PidFile


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Processes]:
    nursery = Processes(tmp_path)
    yield nursery
    nursery.close()


def test_a_process_has_a_session_of_its_own(nursery: Processes) -> None:
    launcher = nursery.launcher()
    process = launcher.start("payment-3")
    assert os.getsid(process.pid) == process.pid, "a Ctrl-C in our terminal must not reach it"
    assert launcher.last_log_line("payment-9") == ""


def test_starts_are_numbered_in_their_order(nursery: Processes) -> None:
    launcher = nursery.launcher()
    started = [launcher.start(name) for name in ("payment-1", "payment-0")]
    environs = [psutil.Process(one.pid).environ for one in started]
    numbers = [wait_for(lambda own=own: own().get("TAILPACK_REPLICA_NUMBER"), "its program") for own in environs]
    assert numbers == ["0", "1"]


def test_a_replica_that_cannot_be_written_down_does_not_run(
    nursery: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = nursery.launcher()

    def full(name: str, incarnation: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(launcher, "save_incarnation", full)
    with pytest.raises(OSError, match="No space left"):
        launcher.start("payment-0")
    children = psutil.Process().children()
    assert not [one for one in children if "reporting_replica" in one.cmdline()]


def test_a_later_process_with_the_same_pid_is_somebody_else(nursery: Processes) -> None:
    launcher = nursery.launcher()
    file = nursery.folder / "replicas" / "payment-0.json"
    for identity in ("another process", ""):
        file.write_bytes(msgspec.json.encode(PidFile(pid=os.getpid(), identity=identity)))
        (left,) = launcher.find_orphans()
        assert left.instance.exit() is not None
        left.instance.kill()  # we live on
    file.write_bytes(b"not json")
    assert list(launcher.find_orphans()) == []
    launcher.forget("payment-0")
