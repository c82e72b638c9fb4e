"""Plans that are strange, many or hard to carry out: the group serves on and converges to the last one."""

import time
from pathlib import Path

import pytest
from handover_trial import NAMES, PARTITIONS, SPREAD, trial
from kafka_helpers import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.long]

STORM = 40
STORM_S = 4.0
SLOW_S = 8.0
"""What the event takes that must not hold others up: many times what a round costs on a busy machine."""


@pytest.mark.parametrize("delivery", ["incremental", "eager"])
def test_a_storm_of_plans_converges_to_the_last(kafka: str, namespace: str, tmp_path: Path, delivery: str) -> None:
    with trial(kafka, namespace, tmp_path, session_s=6.0, delivery=delivery) as run:
        began_s = time.monotonic()
        for number in range(STORM):
            time.sleep(max(0.0, began_s + number * STORM_S / STORM - time.monotonic()))  # the storm's own pace
            last = {partition: NAMES[(partition + number) % 3] for partition in range(PARTITIONS)}
            epoch = run.group.plan(NAMES, last)
        run.group.wait_for_owners(last)
        run.group.wait_for_epoch(epoch, *NAMES)
        settled = run.finish()

    assert len({one.timeline.epoch for one in settled}) > 3, "plans in between were carried out too"


def test_an_event_that_takes_long_holds_up_nobody_but_its_own_replica(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    with trial(kafka, namespace, tmp_path, session_s=6.0, slow_event_s=SLOW_S) as run:
        group = run.group
        run.wait_until_serving()
        slow = group.ask_slow(partition=1)
        run.extra.add(slow)
        began_us = time.time_ns() // 1000
        wait_for(lambda: time.time_ns() // 1000 > began_us + 100_000, "it is being served")
        moved = SPREAD | {0: "payment-2", 5: "payment-0"}
        group.plan(NAMES, moved)
        group.wait_for_owners(moved)
        run.wait_until_serving()
        settled = run.finish()

    it = next(one for one in settled if one.order_id == slow)
    assert it.timeline.replica == "payment-1"
    half_us = (it.timeline.received_us + it.timeline.done_us) // 2
    meanwhile = [one.timeline for one in settled if it.timeline.received_us < one.timeline.done_us < half_us]
    for partition in (0, 2, 3, 5):
        servers = {at.replica for at in meanwhile if at.partition == partition}
        assert moved[partition] in servers, f"partition {partition} was not handed on while the slow event was served"
