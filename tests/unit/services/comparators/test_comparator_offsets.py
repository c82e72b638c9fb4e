"""What may be committed under incremental rebalancing: only what is written, only of what is owned."""

import random

from confluent_kafka import KafkaError, TopicPartition

from services.comparators.offsets import Offsets


class Refused(TopicPartition):
    """As librdkafka reports a partition whose commit failed."""

    error = KafkaError(KafkaError.ILLEGAL_GENERATION)


def owning(*partitions: int) -> Offsets:
    offsets = Offsets("payments")
    offsets.open(partitions)
    return offsets


def committable(offsets: Offsets, partitions: set[int] | None = None) -> dict[int, int]:
    return {each.partition: each.offset for each in offsets.committable(partitions)}


def test_an_event_may_be_committed_once_it_and_all_before_it_are_written():
    offsets = owning(0)
    first, second, third = (offsets.serving(0, offset) for offset in (10, 11, 12))
    assert committable(offsets) == {}

    second()
    assert committable(offsets) == {}, "the first is not written yet"
    first()
    assert committable(offsets) == {0: 12}
    third()
    assert committable(offsets) == {0: 13}


def test_acknowledgements_in_any_order_end_at_the_same_offset():
    offsets = owning(0)
    acknowledge = [offsets.serving(0, offset) for offset in range(50)]
    random.Random(7).shuffle(acknowledge)

    for written in acknowledge:
        written()

    assert committable(offsets) == {0: 50}


def test_what_the_group_has_is_not_committed_again():
    offsets = owning(0, 1)
    offsets.serving(0, 10)()
    offsets.serving(1, 20)()

    offsets.committed([TopicPartition("payments", 0, 11)])

    assert committable(offsets) == {1: 21}


def test_a_refused_commit_is_tried_again():
    offsets = owning(0)
    offsets.serving(0, 10)()

    offsets.committed([Refused("payments", 0, 11)])

    assert committable(offsets) == {0: 11}


def test_only_the_partitions_that_go_are_committed_before_they_go():
    offsets = owning(0, 1)
    offsets.serving(0, 10)()
    offsets.serving(1, 20)()

    assert committable(offsets, {1}) == {1: 21}
    offsets.close([1])
    assert committable(offsets) == {0: 11}


def test_an_acknowledgement_that_comes_after_the_partition_went_counts_for_nothing():
    offsets = owning(0)
    late = offsets.serving(0, 10)
    offsets.close([0])
    offsets.open([0])

    late()
    offsets.committed([TopicPartition("payments", 3, 99)])

    assert committable(offsets) == {}
