"""The replicas of the comparators on a real Kafka: the same test for each runtime."""

import signal
from collections import defaultdict

import pytest
from kafka_helpers import create_topics, produce, read_all, wait_for
from payment_group import STOP_DEADLINE_S, PaymentGroup, assert_effects

from contracts.events import PaymentSettled
from contracts.progress import ReplicaState
from contracts.rebalance_protocol import RUNTIMES
from contracts.topics import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 6


class ComparatorGroup(PaymentGroup):
    """The Payment group under another runtime."""

    def wait_until_shared(self, *names: str) -> None:
        """Wait until all are members, and each has its part."""
        self.wait_until(ReplicaState.MEMBER, *names)
        wait_for(lambda: len(self.owners()) == PARTITIONS, "every partition has an owner")
        wait_for(lambda: set(self.owners().values()) == set(names), f"{names} all own partitions")


@pytest.fixture(params=RUNTIMES)
def group(request, kafka, namespace, tmp_path):
    create_topics(kafka, namespace, PARTITIONS)
    settings = {"TAILPACK_RUNTIME": request.param, "TAILPACK_HEARTBEAT_S": "0.2"}
    module = "tailpack.comparators"
    with ComparatorGroup(kafka, namespace, PARTITIONS, tmp_path, settings=settings, module=module) as comparators:
        yield comparators


def served_by(settled: list[PaymentSettled]) -> set[str | None]:
    return {each.timeline.replica for each in settled}


def first_servings(settled: list[PaymentSettled]) -> dict[int | None, list[int | None]]:
    """Partition → offsets in the order in which they were first served."""
    offsets: dict[int | None, list[int | None]] = defaultdict(list)
    for each in sorted(settled, key=lambda payment: payment.timeline.done_us or 0):
        if each.timeline.offset not in offsets[each.timeline.partition]:
            offsets[each.timeline.partition].append(each.timeline.offset)
    return offsets


def test_two_replicas_share_the_partitions_and_one_takes_over_those_of_the_other(group):
    produce(group.kafka, group.namespace, Topic.PAYMENTS_REQUESTED, [b"not json"], partition=2)
    group.start("payment-0", "payment-1")
    group.wait_until_shared("payment-0", "payment-1")

    group.ask(150)
    shared = group.wait_until_served()
    assert served_by(shared) == {"payment-0", "payment-1"}

    group.ask(150)
    group.signal("payment-1", signal.SIGTERM)  # with work in hand
    settled = group.wait_until_served()
    assert group.processes["payment-1"].wait(STOP_DEADLINE_S) == 0

    repeats = assert_effects(settled, 300)
    assert len(read_all(group.kafka, group.namespace, Topic.DEAD_LETTERS)) == 1, "what is no payment holds up nothing"
    for each in settled:
        line = each.timeline
        assert line.epoch == 0
        assert line.intended_us <= line.received_us <= line.done_us
    assert all(offsets == sorted(offsets) for offsets in first_servings(settled).values())
    assert repeats == 0, "it committed before it left"

    assert group.stop("payment-0") == 0
    assert sum(group.committed().values()) == 301, "everything served is committed at the end"
    group.read_progress()
    processed = {name: report.processed for name, report in group.progress.items()}
    assert sum(processed.values()) == len(settled) + 1
    assert all(report.state is ReplicaState.STOPPING for report in group.progress.values())
    assert all(report.busy_us >= 4_900 * report.processed for report in group.progress.values())
