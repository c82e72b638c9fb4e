"""A Payment group on a real Kafka executes the plans that it reads."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kafka_helpers import create_topics, read_all, wait_for
from odd_headers import produce_bomb, produce_odd
from payment_group import PaymentGroup, assert_effects

from contracts.events import DeadLetter
from contracts.progress import ReplicaState
from contracts.topics import Topic

pytestmark = pytest.mark.kafka


@pytest.fixture
def group(kafka: str, namespace: str, tmp_path: Path) -> Iterator[PaymentGroup]:
    """A group of six partitions without a replica."""
    create_topics(kafka, namespace, 6)
    with PaymentGroup(kafka, namespace, 6, tmp_path) as made:
        yield made


def test_the_assignment_is_the_one_the_plan_states_and_each_new_plan_moves_partitions(group):
    first = {0: "payment-0", 1: "payment-0", 2: "payment-0", 3: "payment-0", 4: "payment-1", 5: "payment-0"}
    epoch = group.plan(["payment-0", "payment-1"], first)
    group.start("payment-0", "payment-1")
    group.wait_for_owners(first)
    group.ask(300)

    second = dict.fromkeys(range(6), "payment-1") | {2: "payment-0"}
    later = group.plan(["payment-0", "payment-1"], second)
    group.wait_for_owners(second)
    group.ask(300)

    settled = group.wait_until_served()
    assert assert_effects(settled, 600) == 0, "a planned handover repeats nothing"
    assert {each.timeline.epoch for each in settled} == {epoch, later}
    for each in settled:
        owner = first if each.timeline.epoch == epoch else second
        assert each.timeline.replica == owner[each.timeline.partition]


def test_kafka_consumer_groups_shows_owner_and_lag_of_each_partition(group):
    planned = {partition: ("payment-0", "payment-1")[partition > 0] for partition in range(6)}
    group.plan(["payment-0", "payment-1"], planned)
    group.start("payment-0", "payment-1")
    group.wait_for_owners(planned)
    group.ask(60)
    group.wait_until_served()
    wait_for(lambda: sum(group.committed().values()) == 60, "every event is committed")
    words = ("kafka", "consumer-groups", "--bootstrap-servers", group.kafka, "--describe", "--group", group.group)
    command = [sys.executable, "-m", "tailpack", *words]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    heading, *lines = [line.split() for line in output.splitlines() if line.strip()]
    rows = [dict(zip(heading, line, strict=True)) for line in lines]
    assert {int(row["PARTITION"]): row["CLIENT-ID"] for row in rows} == planned
    assert {(row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows} == {("10", "10", "0")}


def test_a_replica_is_warm_until_a_plan_includes_it_and_drained_when_a_plan_omits_it(group):
    alone = dict.fromkeys(range(6), "payment-0")
    group.plan(["payment-0"], alone)
    group.start("payment-0")
    group.wait_for_owners(alone)
    group.start("payment-1")
    group.wait_until(ReplicaState.WARM, "payment-1")
    wait_for(lambda: len(group.describe().members) == 2, "it is in the group already")

    both = alone | {4: "payment-1", 5: "payment-1"}
    group.plan(["payment-0", "payment-1"], both)
    group.wait_for_owners(both)
    group.ask(200)

    epoch = group.plan(["payment-0"], alone)
    group.wait_until(ReplicaState.DRAINED, "payment-1")
    group.wait_for_epoch(epoch, "payment-0")

    group.wait_for_owners(alone)
    assert group.progress["payment-1"].member_id == ""
    wait_for(lambda: len(group.describe().members) == 1, "it has left the group")
    assert group.stop("payment-1") == 0
    assert assert_effects(group.wait_until_served(), 200) == 0


HOSTILE = (
    b'{"v":1,"order_id":"\xe4"}',
    b"\xff\xfe",
    b'{"v":1,"order_id":"\\ud800"}',
    b'{"v":1,"amount_minor":' + b"9" * 5000 + b"}",
    b'{"v":1,"amount_minor":NaN}',
    b'{"v":1,"amount_minor":"12","order_id":["a"]}',
    b'{"v":1,"a":' + b"[" * 100_000,
    b'{"v":1,"order_id":"' + b"x" * 900_000 + b'"}',
    b"\x00" * 900_000,
    b"",
    None,
)


def test_no_record_crashes_a_replica_and_each_invalid_record_becomes_a_dead_letter(group):
    group.start("payment-0")
    group.wait_for_owners(dict.fromkeys(range(6), "payment-0"))
    for value in HOSTILE:
        for key in (b"\xff", b"k" * 50_000, None):
            group.write(Topic.PAYMENTS_REQUESTED, value, key=key, partition=2)
    for topic, partition in ((Topic.PAYMENTS_REQUESTED, 2), (Topic.PLANS, 0), (Topic.PROGRESS, 0)):
        produce_odd(group.kafka, group.namespace, topic, b"{", b"}", partition=partition)
        produce_bomb(group.kafka, group.namespace, topic, partition)
    group.ask(30)

    assert assert_effects(group.wait_until_served(), 30) == 0
    letters = [
        msgspec.json.decode(record.value(), type=DeadLetter)
        for record in read_all(group.kafka, group.namespace, Topic.DEAD_LETTERS)
    ]
    assert sorted(letter.offset for letter in letters) == list(range(3 * len(HOSTILE) + 3))
    assert all(letter.reasons and letter.stage == "payment" for letter in letters)
