"""What the bench of the controller does beside measuring: it moves what it says, and counts what it should."""

import json
import subprocess
import sys

import pytest
from live_fakes import FakeClock

from autoscaler.live.launcher import ReplicaProcess
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
        seat.signal(15)
        assert (seat.pid, seat.exit(), host.poll()) == (host.pid, None, None)
        host.kill()


@pytest.mark.kafka
@pytest.mark.long
def test_a_small_size_is_measured_whole() -> None:
    command = [sys.executable, "-m", "tailpack", "bench", "live-scale", "--quick", "--sizes", "4x8", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["members"], row["partitions"], row["problem"]) == (4, 8, "")
    assert all(row[name] > 0 for name in row if name.endswith(("_s", "_cores", "_day")))
