"""The launcher of local processes passes the tests for all launchers."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_helpers import wait_for
from launcher_contract import LauncherContract, Processes

from autoscaler.live.launchers.processes import ProcessLauncher
from contracts import children


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Processes]:
    nursery = Processes(tmp_path)
    yield nursery
    nursery.close()


class TestProcesses(LauncherContract): ...


def test_the_log_of_a_running_replica_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MAX_LOG_BYTES", 1000)
    one_line_per_signal = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
for number in range(6):
    print(number, "x" * 600, flush=True)
    signal.sigwait({signal.SIGUSR1})
"""
    launcher = ProcessLauncher(tmp_path, [sys.executable, "-c", one_line_per_signal], os.environ)
    replica, log = launcher.start("payment-0"), tmp_path / "logs/payment-0.log"
    try:
        for number in range(6):
            wait_for(lambda number=number: launcher.last_log_line("payment-0").startswith(str(number)), "the next line")
            assert replica.exit() is None
            assert log.stat().st_size <= 1000
            os.kill(replica.pid, signal.SIGUSR1)
    finally:
        replica.kill()
        wait_for(replica.exit, "the end")
    kept = log.with_name("payment-0.log.1").read_text() + log.read_text()
    assert [line[0] for line in kept.splitlines()] == ["4", "5"]
