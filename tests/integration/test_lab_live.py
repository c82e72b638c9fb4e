"""A live run of the laboratory: a replica is killed, the broker stops, and the run is read like a simulated one."""

from pathlib import Path

import pytest

from contracts.journal import ReplicaChange, ReplicaChanged
from tailpack import lab
from tailpack.errors import TailpackError

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(300)]


def test_a_live_run_kills_a_replica_stops_the_broker_and_is_read_with_all_its_events(tmp_path: Path) -> None:
    run = lab.live("smoke", policy="static-2", kill="payment-0@4", freeze="8+2", out=str(tmp_path))

    changes = [one for one in run.entries if isinstance(one, ReplicaChanged)]
    deaths = [one.replica for one in changes if one.change is ReplicaChange.DIED]
    assert "payment-0" in deaths
    assert len(run.events["latency_s"]) == 400
    in_stop = (run.events["intended_s"] > 8.1) & (run.events["intended_s"] < 8.5)
    assert run.events["latency_s"][in_stop].min() > 1, "an event that is intended while the broker stands still waits"
    assert run.partitions()._repr_png_()


def test_a_live_run_needs_a_policy_that_other_processes_can_load() -> None:
    with pytest.raises(TailpackError, match=r"path\.py:Class"):
        lab.live("smoke", policy=dict)
