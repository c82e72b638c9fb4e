"""Commits are made by the present generation, never by a member that has none."""

import asyncio
from typing import Any

import pytest
from aiokafka import errors
from aiokafka.structs import TopicPartition

from services.consumer.commits import Committer

TOPIC = "payments.requested"


class Coordinator:
    """As much of aiokafka's coordinator as a commit touches."""

    def __init__(self, generation: int = 5) -> None:
        self.generation = generation
        self.commits: list[dict[int, int]] = []
        self.answers: list[Exception] = []

    async def _do_commit_offsets(self, assignment: Any, offsets: dict[TopicPartition, Any]) -> None:
        await asyncio.sleep(0)
        if self.answers:
            raise self.answers.pop(0)
        self.commits.append({at.partition: offset.offset for at, offset in offsets.items()})


def committer(coordinator: Coordinator, *, served: int = 3) -> Committer:
    one = Committer(coordinator, TOPIC, interval_s=0.1)
    ledger = one.open(5)
    for offset in range(served):
        ledger.served(0, offset)
        ledger.acknowledged(0, offset)
    return one


def test_what_is_acknowledged_is_committed_once():
    coordinator = Coordinator()
    one = committer(coordinator)

    assert asyncio.run(one.commit())
    assert asyncio.run(one.commit())
    assert coordinator.commits == [{0: 3}]


@pytest.mark.parametrize("generation", [-1, 6])
def test_a_member_of_another_generation_is_silent(generation):
    coordinator = Coordinator(generation)

    assert not asyncio.run(committer(coordinator).commit())
    assert coordinator.commits == []


def test_after_the_commit_before_a_handover_nothing_more_is_committed():
    coordinator = Coordinator()
    one = committer(coordinator)

    async def story() -> None:
        assert await one.close()
        one.ledger.served(0, 3)
        one.ledger.acknowledged(0, 3)  # an acknowledgement that came late
        assert not await one.commit()

    asyncio.run(story())
    assert coordinator.commits == [{0: 3}]


def test_the_commit_before_a_handover_is_tried_again_while_the_coordinator_moves():
    coordinator = Coordinator()
    coordinator.answers = [errors.NotCoordinatorForGroupError(), errors.GroupLoadInProgressError()]

    assert asyncio.run(committer(coordinator).close())
    assert coordinator.commits == [{0: 3}]


@pytest.mark.parametrize(
    "answer", [errors.IllegalGenerationError, errors.UnknownMemberIdError, errors.CommitFailedError]
)
def test_a_refused_commit_loses_nothing_but_repeats_events(answer):
    coordinator = Coordinator()
    coordinator.answers = [answer()]

    assert not asyncio.run(committer(coordinator).commit())


def test_an_error_that_trying_again_cannot_mend_is_raised():
    coordinator = Coordinator()
    coordinator.answers = [errors.GroupAuthorizationFailedError("group")]

    with pytest.raises(errors.GroupAuthorizationFailedError):
        asyncio.run(committer(coordinator).commit())


def test_a_new_assignment_begins_with_an_empty_ledger():
    coordinator = Coordinator()
    one = committer(coordinator)
    old = one.ledger
    coordinator.generation = 6
    one.open(6)
    old.served(0, 9)
    old.acknowledged(0, 9)

    assert asyncio.run(one.commit())
    assert coordinator.commits == [], "a late acknowledgement of the old assignment commits nothing"
