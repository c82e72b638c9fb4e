"""Pid files of real processes, and how a later launcher finds them. tests/contract has the other tests."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from launcher_contract import Processes

from autoscaler.live.launchers.processes import PidFile


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Processes]:
    nursery = Processes(tmp_path)
    yield nursery
    nursery.close()


def test_each_replica_has_its_own_session(nursery: Processes) -> None:
    launcher = nursery.launcher()
    process = launcher.start("payment-3")
    assert os.getsid(process.pid) == process.pid, "Ctrl-C in the terminal must not reach it"
    assert launcher.last_log_line("payment-9") == ""


def test_a_replica_whose_pid_file_cannot_be_written_does_not_run(
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


def test_a_later_process_with_the_same_pid_is_not_the_replica(nursery: Processes) -> None:
    launcher = nursery.launcher()
    file = nursery.folder / "replicas" / "payment-0.json"
    for identity in ("another process", ""):
        file.write_bytes(msgspec.json.encode(PidFile(pid=os.getpid(), identity=identity)))
        (orphan,) = launcher.find_orphans()
        assert orphan.instance.exit() is not None
        orphan.instance.kill()  # this process survives
    file.write_bytes(b'{"pid":-9,"who":"a"}')
    assert list(launcher.find_orphans()) == []
    launcher.forget("payment-0")
