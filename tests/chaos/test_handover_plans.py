"""Plans that are strange, many or hard to carry out: the group serves on and converges to the last one."""

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions
from handover_trial import NAMES, PARTITIONS, SPREAD, trial
from kafka_helpers import admin, wait_for
from payment_group import PaymentGroup

from contracts.topics import Topic, qualified

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
        run.group.wait_for_owners(last, deadline_s=5.0)
        run.group.wait_for_epoch(epoch, *NAMES)
        settled = run.finish()

    assert len({one.timeline.epoch for one in settled}) > 3, "plans in between were carried out too"


def grow(group: PaymentGroup, count: int) -> None:
    topic = qualified(group.namespace, Topic.PAYMENTS_REQUESTED)
    client = admin(group.kafka)  # kept: its answer is lost with it
    client.create_partitions([NewPartitions(topic, count)])[topic].result(10)


def test_a_topic_that_grows_is_served_whole_whether_the_plan_names_the_new_partitions_or_not(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    with trial(kafka, namespace, tmp_path, session_s=6.0) as run:
        group = run.group
        ahead = SPREAD | {partition: NAMES[partition % 3] for partition in range(9, 12)} | {99: "payment-0"}
        epoch = group.plan(NAMES, ahead)
        group.wait_for_epoch(epoch, *NAMES)
        assert group.owners() == SPREAD, "what the plan names and the topic has not is left out"

        grow(group, 9)
        for partition in range(6, 9):
            run.ask(3, partition)
        wait_for(lambda: sorted(group.owners()) == list(range(9)), "the new ones are served, by somebody")
        assert group.owners().items() >= SPREAD.items(), "the others stay where they are"

        grow(group, 12)
        whole = {partition: NAMES[partition % 3] for partition in range(12)}
        group.plan(NAMES, whole)
        for partition in range(9, 12):
            run.ask(3, partition)
        group.wait_for_owners(whole)
        run.finish()


def test_members_that_a_plan_names_and_nobody_knows_have_their_share_served_by_the_others(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    with trial(kafka, namespace, tmp_path, session_s=6.0) as run:
        strange = {0: "payment-0", 1: "ghost", 2: "payment-0", 3: "spectre", 4: "", 5: "payment-2"}
        epoch = run.group.plan([*NAMES, "ghost"], strange)
        run.group.wait_for_epoch(epoch, *NAMES)

        kept = SPREAD | {2: "payment-0"}
        run.group.wait_for_owners(kept, deadline_s=5.0)

        epoch = run.group.plan(["ghost"], dict.fromkeys(range(PARTITIONS), "ghost"))
        run.group.wait_for_epoch(epoch, *NAMES)
        assert run.group.owners() == kept, "with nobody of the plan there, all stays as it is"
        run.finish()


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
