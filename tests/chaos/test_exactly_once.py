"""Each output of a killed or frozen replica is visible once: repeats are aborted, or refused by the next stage."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from commit_history import assert_no_commit_goes_back
from kafka_helpers import create_topics, read_all, wait_for
from payment_group import PaymentGroup, assert_effects
from payment_load import assert_in_order
from services_stack import Stack

from contracts.plan import Eviction
from contracts.topics import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 6
NAMES = ["payment-0", "payment-1", "payment-2"]
SPREAD = {partition: NAMES[partition % 3] for partition in range(PARTITIONS)}
SESSION_S = 3.0
POISON = 30
"""Invalid events among 300, so that every transaction contains some."""
ATOMIC = {"TAILPACK_GUARANTEE": "exactly_once"}


def assert_once(group: PaymentGroup, *, poison: int = 0, deadline_s: float = 60.0) -> None:
    """Committed readers see each payment and each of `poison` dead letters, and none twice, the payments in order.

    All is committed, and no commit went back.
    """
    settled = group.wait_until_served(deadline_s=deadline_s)
    assert assert_effects(settled, group.produced) == 0, "no repeats, and nobody has dropped any"
    assert_in_order(settled)
    wait_for(lambda: sum(group.committed().values()) == group.produced + poison, "every event is committed")
    assert len(group.settled()) == group.produced
    letters = read_all(group.kafka, group.namespace, Topic.DEAD_LETTERS)
    events = [(letter["partition"], letter["offset"]) for letter in (json.loads(each.value()) for each in letters)]
    assert (len(events), len(set(events))) == (poison, poison), "one dead letter for each invalid event"
    assert_no_commit_goes_back(group.kafka, group.group)


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of each replica."""
    return ATOMIC


@pytest.fixture
def group(kafka: str, namespace: str, tmp_path: Path, settings: dict[str, str]) -> Iterator[PaymentGroup]:
    """Three replicas that serve two partitions each."""
    create_topics(kafka, namespace, PARTITIONS)
    with PaymentGroup(kafka, namespace, PARTITIONS, tmp_path, session_s=SESSION_S, settings=settings) as made:
        made.plan(NAMES, SPREAD)
        made.start(*NAMES)
        made.wait_for_owners(SPREAD)
        yield made


@pytest.mark.parametrize("known", [True, False], ids=["evicted", "timed-out"])
@pytest.mark.parametrize(
    "step", ["begin_transaction:3", "send:20", "send_offsets_to_transaction:3", "commit_transaction:3"]
)
def test_outputs_are_visible_once_if_a_replica_is_killed_inside_a_transaction(
    kafka: str, namespace: str, tmp_path: Path, step: str, known: bool
) -> None:
    create_topics(kafka, namespace, PARTITIONS)
    settings = ATOMIC | {
        "DIE_AFTER": step,
        "PYTHONPATH": f"{Path(__file__).parents[1] / 'support'}:{Path(__file__).parents[2]}",
    }
    with PaymentGroup(
        kafka, namespace, PARTITIONS, tmp_path, session_s=SESSION_S, settings=settings, module="dying_payment"
    ) as group:
        group.start("payment-0")
        group.wait_for_owners(dict.fromkeys(range(PARTITIONS), "payment-0"))
        for number in range(POISON):
            group.ask(300 // POISON)
            group.write(Topic.PAYMENTS_REQUESTED, b'{"order_id":"\xe4"}', partition=number % PARTITIONS)
        dying = group.processes["payment-0"]
        wait_for(lambda: dying.poll() is not None, "the replica has been killed")
        assert dying.returncode == -signal.SIGKILL
        report = group.read_progress()["payment-0"]
        del group.processes["payment-0"]

        group.module = "services.payment"
        group.start("payment-1")
        evicted = Eviction(replica="payment-0", member_id=report.member_id, incarnation=report.incarnation)
        all_to_it = dict.fromkeys(range(PARTITIONS), "payment-1")
        group.plan(["payment-1"], all_to_it, evictions=(evicted,) if known else ())
        assert_once(group, poison=POISON)


def frozen_and_awake(group: PaymentGroup, name: str) -> None:
    """Freeze a replica until others have served its events, then let it continue."""
    group.ask(600)
    wait_for(lambda: group.read_progress()[name].processed > 20, "it is at work")
    group.signal(name, signal.SIGSTOP)
    mine = {partition for partition, owner in SPREAD.items() if owner == name}

    def others_serve() -> set[int]:
        return {each for one in group.read_progress().values() if one.replica != name for each in one.partitions}

    wait_for(lambda: mine <= others_serve(), "others serve its partitions")
    group.ask(60)
    group.wait_until_served()
    group.signal(name, signal.SIGCONT)
    group.wait_for_owners(SPREAD)


def test_uncommitted_outputs_of_a_frozen_replica_are_never_visible(group: PaymentGroup) -> None:
    frozen_and_awake(group, "payment-1")
    group.ask(60)
    assert_once(group)
    assert group.processes["payment-1"].poll() is None, "it has joined again"


@pytest.mark.parametrize("settings", [{"TAILPACK_SLOW_EVENT_S": "1.5", "TAILPACK_CONCURRENCY": "2"}])
def test_at_least_once_outputs_of_a_woken_replica_have_no_effect(group: PaymentGroup, tmp_path: Path) -> None:
    stack = Stack(group.kafka, group.namespace, tmp_path)
    try:
        stack.start("shipment")
        for partition in (1, 4):
            group.ask_slow(partition)  # so that an event is in flight when it is stopped
        frozen_and_awake(group, "payment-1")
        wait_for(lambda: stack.get("shipment", "/healthz")[1]["fenced"] > 0, "a zombie's record is refused")

        orders = {each.order_id for each in group.settled() if each.accepted}

        def shipped() -> list[bytes | None]:
            return [record.key() for record in read_all(group.kafka, group.namespace, Topic.SHIPMENTS_SCHEDULED)]

        wait_for(lambda: {key.decode() for key in shipped() if key} == orders, "every accepted order is shipped")
        assert len(shipped()) == len(orders), "and once"
    finally:
        for service in list(stack.processes):
            stack.kill(service)
