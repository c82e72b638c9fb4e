"""The wall clock jumps while an autoscaler and its replicas run: no process exits, and ticks continue."""

import re
import signal
from pathlib import Path

import pytest
from clock_that_steps import SteppedClock, needs_libfaketime
from kafka_helpers import create_topics, wait_for
from live_autoscaler import PARTITIONS, Autoscaler

from contracts.journal import ReplicaChange, TickRecord

pytestmark = [pytest.mark.kafka, needs_libfaketime]
STEPPED = re.compile(r"clock: wall clock jumped by [+-]\d+\.\d s").match


def test_a_jump_of_the_wall_clock_kills_no_replica_and_stops_no_tick(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    create_topics(kafka, namespace, PARTITIONS)
    clock = SteppedClock(tmp_path)
    with Autoscaler(kafka, namespace, tmp_path / "state", more=clock.environ) as autoscaler:
        autoscaler.wait_for_plan(1)
        autoscaler.wait_for_tick(lambda tick: tick.partitions, "an observation")
        before = autoscaler.pids()
        for noticed, step_s in enumerate([3600, 0], start=1):
            clock.set(step_s)
            jump = wait_for(lambda number=noticed: reported_jump(autoscaler, number), "the step is noticed")
            autoscaler.wait_for_tick(lambda tick, jump=jump: tick.tick >= jump.tick + 4, "four more ticks")
            wait_for(lambda: autoscaler.get("/healthz")["status"] == "ok", "it is healthy")
        ticks = autoscaler.ticks()[5:]
        assert [one.missing for one in ticks if one.missing] == [], "something was always known"
        assert autoscaler.pids() == before

        autoscaler.signal(signal.SIGKILL)
        autoscaler.ended()
        autoscaler.start()
        wait_for(lambda: ReplicaChange.ADOPTED in [one.change for one in autoscaler.changes("payment-1")], "adoption")
        autoscaler.wait_for_tick(lambda tick: tick.partitions and tick.tick < len(ticks), "its own observation")
        assert autoscaler.pids() == before, "the living are adopted, no twin is started"
        changes = {one.change for name in before for one in autoscaler.changes(name)}
        assert ReplicaChange.DIED not in changes
        assert len(autoscaler.plans()) == 1


def reported_jump(autoscaler: Autoscaler, number: int) -> TickRecord | None:
    """Return the tick that noticed the so-manyth step."""
    return next(iter([one for one in autoscaler.ticks() if any(map(STEPPED, one.problems))][number - 1 :]), None)
