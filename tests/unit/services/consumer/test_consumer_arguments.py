"""What a consumer refuses to be built from, in one line that says what to do."""

import asyncio

import pytest

from contracts.connection import Connection
from services.consumer import Event, Options, PlanConsumer, Topics

NOWHERE = Connection(bootstrap_servers="localhost:1")
TOPICS = Topics(group="g", events="e", plans="p", progress="r")


async def handle(event: Event) -> None:
    """Nothing to do."""


async def handle_batch(events: object) -> None:
    """Nothing to do."""


@pytest.mark.parametrize(
    ("replica", "keywords", "problem"),
    [
        ("", {"handle": handle}, "replica must not be empty"),
        ("r", {}, "give either handle or handle_batch"),
        ("r", {"handle": handle, "handle_batch": handle_batch}, "give either handle or handle_batch"),
        ("r", {"handle": handle, "options": Options(batch_size=5)}, "batch_size 5 is for handle_batch"),
    ],
)
def test_contradictory_arguments_are_refused(replica, keywords, problem):
    with pytest.raises(ValueError, match=problem):
        PlanConsumer(replica, NOWHERE, TOPICS, **keywords)


def test_it_is_built_without_a_broker_or_an_event_loop_and_serves_nothing_yet():
    assert PlanConsumer("r", NOWHERE, TOPICS, handle).partitions == ()
    assert PlanConsumer("r", NOWHERE, TOPICS, handle_batch=handle_batch, options=Options(batch_size=5)).partitions == ()


def test_incarnations_of_one_name_sort_by_when_they_were_made():
    made = [PlanConsumer("r", NOWHERE, TOPICS, handle)._incarnation for _ in range(3)]
    stamps = [each.partition("-")[0] for each in made]

    assert stamps == sorted(stamps)
    assert len(set(made)) == 3
    assert {len(each) for each in stamps} == {16}


def test_a_paused_partition_starts_nothing_until_it_is_resumed():
    async def story() -> None:
        consumer = PlanConsumer("r", NOWHERE, TOPICS, handle)
        consumer._lanes.open({3: 0}, epoch=1)
        consumer.pause(3)
        assert consumer._lanes[3].paused
        assert consumer.partitions == (3,), "it is still served, only later"
        consumer._lanes.take()
        consumer.resume(3)
        assert not consumer._lanes[3].paused
        await asyncio.wait_for(consumer._lanes.startable(), 1)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"heartbeat_s": 0}, "heartbeat_s 0 must lie between 0 and session_s 6.0"),
        ({"heartbeat_s": 6.0}, "heartbeat_s 6.0 must lie between"),
        ({"session_s": 0.1}, "session_s 0.1"),
        ({"commit_interval_s": 0}, "commit_interval_s 0 must be positive"),
        ({"rebalance_timeout_s": -1}, "rebalance_timeout_s -1 must be positive"),
        ({"concurrency": 0}, "concurrency 0 must be positive"),
        ({"concurrency_per_partition": 0}, "concurrency_per_partition 0 must be positive"),
        ({"batch_size": 0}, "batch_size 0 must be positive"),
        ({"drain_s": -0.1}, "drain_s -0.1 must not be negative"),
    ],
)
def test_an_option_that_cannot_be_meant_is_named_with_its_value(fields, problem):
    with pytest.raises(ValueError, match=problem):
        Options(**fields)


def test_the_defaults_stand_and_leaving_at_once_is_allowed():
    assert Options(drain_s=0).concurrency == 1
