"""Names inside a namespace never meet those of another, and partition counts agree where tables need them to."""

import pytest

from contracts.topics import PIPELINE_PARTITIONS, Group, Topic, partitions_of, qualified


def test_a_namespace_stands_before_the_name() -> None:
    assert qualified("run-1", Topic.ORDERS_PLACED) == "run-1.orders.placed"
    assert qualified("run-1", Group.PAYMENT) == "run-1.payment"
    assert qualified("", Topic.ORDERS_PLACED) == "orders.placed"
    assert type(qualified("", Topic.ORDERS_PLACED)) is str


@pytest.mark.parametrize("topic", Topic)
def test_only_the_scaled_topic_follows_the_run(topic: Topic) -> None:
    follows = {count: partitions_of(topic, count) for count in (1, 5, 9)}
    if topic is Topic.PAYMENTS_REQUESTED:
        assert follows == {1: 1, 5: 5, 9: 9}
    else:
        assert len(set(follows.values())) == 1


def test_topics_keyed_by_order_id_have_the_same_partitions() -> None:
    keyed = (Topic.ORDERS_PLACED, Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT)
    assert {partitions_of(topic, 9) for topic in keyed} == {PIPELINE_PARTITIONS}
    assert {partitions_of(topic, 9, 7) for topic in keyed} == {7}
    assert (partitions_of(Topic.PAYMENTS_REQUESTED, 9, 7), partitions_of(Topic.JOURNAL, 9, 7)) == (9, 1)
