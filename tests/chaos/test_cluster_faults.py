"""One of three nodes dies during rebalances: the group finds its new coordinator, and no event is lost.

The node that coordinates the Payment group is killed in a rebalance. Every partition has a copy there, so nothing is
acknowledged and nothing new is visible for 3 s, or longer if it also led the quorum. Then a successor loads the group
from its copy.
"""

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster_helpers import bootstrap, coordinator_of, wait_until_whole
from commit_history import assert_no_commit_goes_back, committed_offsets
from confluent_kafka import ConsumerGroupState
from kafka_helpers import DEADLINE_S, create_topics, wait_for
from payment_group import PaymentGroup
from payment_load import PaymentLoad, longest_silence_s

from contracts.events import PaymentSettled
from contracts.plan import Eviction
from tailpack.local.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.long]

RATE = 100
PARTITIONS = 6
NAMES = ["payment-0", "payment-1"]
FIRST = {partition: NAMES[partition % 2] for partition in range(PARTITIONS)}
SECOND = {partition: NAMES[partition // 3] for partition in range(PARTITIONS)}
"""A plan that moves two partitions."""
REPEATS = 3 * RATE
"""Most events served since the last commit: without a coordinator no replica can commit."""


@dataclass
class Fault:
    """Two replicas that carry out FIRST under load, on a cluster of which one node may be killed."""

    cluster: Broker
    group: PaymentGroup
    load: PaymentLoad

    def coordinator(self) -> int:
        """Return the number of the node that coordinates the group."""
        return coordinator_of(self.cluster, self.group.group)

    def heal(self) -> None:
        """Bring the dead nodes back and wait until they have caught up."""
        self.cluster.start()
        wait_until_whole(self.cluster)

    def served(self) -> int:
        """Return the number of served events that the replicas have reported."""
        return sum(each.processed for each in self.group.read_progress().values())

    def wait_until_serving(self) -> None:
        """Wait until the group has served one more second of events."""
        before = self.served()
        wait_for(lambda: self.served() >= before + RATE, "the group serves")

    def finish(self) -> list[PaymentSettled]:
        """End the load, wait until all events are served and committed; return the settled payments."""
        self.load.finish()
        wait_for(lambda: not self.load.unserved(), "every event is served", every_s=0.3)
        settled = self.load.settled()
        deadline_s = time.monotonic() + DEADLINE_S
        while (left := self.uncommitted(settled)) and time.monotonic() < deadline_s:
            time.sleep(0.3)  # a reading of the whole log of offsets each time
        assert not left, f"not committed, partition → (committed, end): {left}"
        return settled

    def uncommitted(self, settled: list[PaymentSettled]) -> dict[int, tuple[int, int]]:
        """Return partition → (committed offset, end offset) of partitions where they differ."""
        commits = committed_offsets(self.group.kafka, self.group.group)
        ends = {
            partition: 1 + max(one.timeline.offset for one in settled if one.timeline.partition == partition)
            for partition in range(PARTITIONS)
        }
        reached = {partition: commits.get(partition, [0])[-1] for partition in ends}
        return {each: (reached[each], ends[each]) for each in ends if reached[each] != ends[each]}


@pytest.fixture
def fault(cluster: Broker, namespace: str, tmp_path: Path) -> Iterator[Fault]:
    kafka = bootstrap(cluster)
    create_topics(kafka, namespace, PARTITIONS)
    with PaymentGroup(kafka, namespace, PARTITIONS, tmp_path) as group:
        group.plan(NAMES, FIRST)
        group.start(*NAMES)
        group.wait_for_owners(FIRST)
        wait_until_whole(cluster)
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            started = Fault(cluster, group, load)
            started.wait_until_serving()
            try:
                yield started
            finally:
                started.heal()


def place(one: PaymentSettled) -> tuple[int, int]:
    """Return partition and offset of the request, its identity: the producer of the load may write an event twice."""
    return one.timeline.partition, one.timeline.offset


def out_of_order(settled: list[PaymentSettled], crashed: str) -> list[PaymentSettled]:
    """Return events that were first served after a later event of their partition.

    Some outputs of a crashed replica never arrived, so its successor may seem to be late.
    """
    newest: dict[int, PaymentSettled] = {}
    seen: set[tuple[int, int]] = set()
    late = []
    for one in sorted(settled, key=lambda one: one.timeline.done_us or 0):
        partition, offset = place(one)
        before = newest.get(partition)
        if before is None or offset > before.timeline.offset:
            newest[partition] = one
        elif place(one) not in seen and before.timeline.replica != crashed:
            late.append(one)
        seen.add(place(one))
    return late


def assert_nothing_went_wrong(fault: Fault, *, crashed: str = "") -> None:
    """Check that no event is lost, order is preserved, no commit goes back, and few events are repeated."""
    settled = fault.finish()
    assert {one.order_id for one in settled} == set(fault.load.orders)
    verdicts = {(one.payment_id, one.accepted, one.decline_reason, one.risk_score) for one in settled}
    assert len(verdicts) == len(fault.load.orders), "repeats must say the same"
    repeats = len(settled) - len({place(one) for one in settled})
    assert not out_of_order(settled, crashed)
    assert_no_commit_goes_back(fault.group.kafka, fault.group.group)
    print(f"{len(settled)} served, {repeats} of them again; longest silence {longest_silence_s(settled):.1f} s")  # noqa: T201  # pytest -s
    assert repeats <= REPEATS


def kill_amid_plans(fault: Fault, node: int) -> None:
    for number in range(20):
        fault.group.plan(NAMES, FIRST if number % 2 else SECOND)
        if number == 10:
            fault.cluster.kill(node)
    fault.group.plan(NAMES, SECOND)


def kill_while_a_member_is_awaited(fault: Fault, node: int) -> None:
    fault.group.signal("payment-1", signal.SIGSTOP)
    fault.group.plan(NAMES, SECOND)
    wait_for(lambda: fault.group.describe().state is ConsumerGroupState.PREPARING_REBALANCING, "the round is open")
    fault.cluster.kill(node)
    fault.group.signal("payment-1", signal.SIGCONT)


@pytest.mark.parametrize("meet", [kill_amid_plans, kill_while_a_member_is_awaited])
def test_the_group_carries_out_the_plan_after_its_coordinator_dies(
    fault: Fault, meet: Callable[[Fault, int], None]
) -> None:
    node = fault.coordinator()
    meet(fault, node)

    fault.group.wait_for_owners(SECOND)
    fault.wait_until_serving()
    assert fault.coordinator() != node
    fault.heal()
    fault.group.plan(NAMES, FIRST)
    fault.group.wait_for_owners(FIRST)
    assert_nothing_went_wrong(fault)


def test_no_event_is_lost_if_a_replica_and_the_coordinator_die_together(fault: Fault) -> None:
    dead = fault.group.progress["payment-1"]
    node = fault.coordinator()
    fault.group.kill("payment-1")
    fault.cluster.kill(node)
    evicted = Eviction(replica="payment-1", member_id=dead.member_id, incarnation=dead.incarnation)
    fault.group.plan(["payment-0"], dict.fromkeys(FIRST, "payment-0"), (evicted,))

    wait_for(
        lambda: fault.group.read_progress()["payment-0"].partitions == tuple(range(PARTITIONS)),
        "the survivor serves everything",
    )
    fault.heal()
    assert_nothing_went_wrong(fault, crashed="payment-1")
