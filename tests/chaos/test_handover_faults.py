"""Replicas freeze, die or start twice without a new plan: no event is lost, and the order is preserved."""

import signal
import time
from pathlib import Path

import pytest
from handover_trial import SPREAD, trial
from kafka_helpers import wait_for

from contracts.progress import ReplicaState

pytestmark = [pytest.mark.kafka, pytest.mark.long]

BACKLOG = 400
"""Two seconds of events of one partition."""
both_protocols = pytest.mark.parametrize("rebalance_protocol", ["incremental", "eager"])


@both_protocols
def test_a_replica_frozen_beyond_its_session_repeats_no_event_of_others(
    kafka: str, namespace: str, tmp_path: Path, rebalance_protocol: str
) -> None:
    with trial(kafka, namespace, tmp_path, rebalance_protocol=rebalance_protocol) as run:
        group = run.group
        run.wait_until_serving()
        run.ask(BACKLOG, partition=1)
        begun = group.read_progress()["payment-1"].processed
        wait_for(lambda: group.read_progress()["payment-1"].processed > begun + 20, "it is at work on its backlog")
        wait_for(lambda: all(run.committed_of("payment-1").values()), "it commits what it serves", every_s=0.01)
        group.signal("payment-1", signal.SIGSTOP)
        lost_at = run.committed_of("payment-1")
        wait_for(lambda: len(group.describe().members) == 2, "the group goes on without it")
        wait_for(lambda: group.committed().get(1, 0) >= BACKLOG, "the others serve its backlog")
        woken_us = time.time_ns() // 1000
        group.signal("payment-1", signal.SIGCONT)
        group.wait_for_owners(SPREAD)
        wait_for(
            lambda: (
                group.read_progress()["payment-1"].at_us > woken_us and group.progress["payment-1"].partitions == (1, 4)
            ),
            "it is given its partitions again",
        )
        run.wait_until_serving()
        settled = run.finish(lost_at=lost_at)

    first_us: dict[str, int] = {}
    for one in sorted(settled, key=lambda each: each.timeline.done_us):
        first_us.setdefault(one.order_id, one.timeline.done_us)
    stale = [
        one
        for one in settled
        if one.timeline.replica == "payment-1" and one.timeline.done_us > max(woken_us, first_us[one.order_id])
    ]
    assert len(stale) <= 1, "the event it was at work on, and no other"


@both_protocols
def test_without_a_controller_the_others_take_over_after_the_session_time_out(
    kafka: str, namespace: str, tmp_path: Path, rebalance_protocol: str
) -> None:
    with trial(kafka, namespace, tmp_path, rebalance_protocol=rebalance_protocol) as run:
        group = run.group
        run.wait_until_serving()
        wait_for(lambda: all(run.committed_of("payment-1").values()), "it commits what it serves")
        group.kill("payment-1")
        lost_at = run.committed_of("payment-1")
        rest = SPREAD | {1: "payment-0", 4: "payment-2"}

        group.wait_for_owners(rest)

        group.start("payment-7")
        group.wait_until(ReplicaState.WARM, "payment-7")
        run.wait_until_serving()
        assert group.owners() == rest, "whom no plan names, that owns nothing"
        run.finish(lost_at=lost_at)
