"""What the bench of the controller does beside measuring: it moves what it says, and counts what it should."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from kafka_helpers import wait_for
from live_fakes import FakeClock

from autoscaler.live.launchers.processes import ReplicaProcess
from autoscaler.model import Action, GroupObservation, PartitionLoad, Replica
from bench.live_scale.controller import Mover, Seats

NAMES = ("payment-0", "payment-1", "payment-2")
OBSERVATION = GroupObservation(
    at_s=FakeClock()(),
    partitions=tuple(PartitionLoad(number, 0.0, 0) for number in range(12)),
    replicas=tuple(Replica(name, ready=True) for name in NAMES),
    assignment={number: NAMES[number % 3] for number in range(12)},
    service_rate=200.0,
    rebalance_time_s=0.05,
)


def test_a_quarter_of_the_partitions_moves_when_it_is_asked_for() -> None:
    mover = Mover()
    assert mover.decide(OBSERVATION).action is Action.HOLD
    mover.asked = True
    decision = mover.decide(OBSERVATION)
    assert decision.action is Action.REASSIGN
    assert decision.plan.assignment is not None
    moved = [at for at, owner in decision.plan.assignment.items() if OBSERVATION.assignment[at] != owner]
    assert moved == [0, 4, 8]
    assert mover.decide(OBSERVATION).action is Action.HOLD
    assert mover.observed == 3


def test_seats_are_in_processes_that_run_and_stay() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as host:
        seat: ReplicaProcess = Seats({"payment-7": host.pid}).start("payment-7")
        seat.ask_to_stop()
        assert (seat.pid, seat.exit(), host.poll()) == (host.pid, None, None)
        host.kill()


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.usefixtures("_as_in_a_terminal")
def test_a_small_size_is_measured_whole_and_kept_when_the_next_one_is_interrupted() -> None:
    command = [sys.executable, "-m", "tailpack", "bench", "live-scale", "--quick", "--sizes", "4x8,4x9", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
        first = wait_for(lambda: _broker_of(bench.pid), "a broker for the first size", deadline_s=60)
        wait_for(lambda: _broker_of(bench.pid) not in (None, first), "one for the second", deadline_s=120)
        left = psutil.Process(bench.pid).children(recursive=True)
        bench.send_signal(signal.SIGINT)
        said, _ = bench.communicate(timeout=60)
    assert bench.returncode == 130
    (row,) = json.loads(said)
    assert (row["members"], row["partitions"], row["problem"]) == (4, 8, "")
    assert all(row[name] > 0 for name in row if name.endswith(("_s", "_cores", "_day")))
    assert not [child for child in left if child.is_running()]


@pytest.fixture
def _as_in_a_terminal() -> Iterator[None]:
    """Jobs in the background ignore SIGINT, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _broker_of(pid: int) -> int | None:
    for child in psutil.Process(pid).children():
        with suppress(psutil.Error):
            if "kafka.Kafka" in child.cmdline():
                return child.pid
    return None
