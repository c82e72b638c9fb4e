"""What happens to a replica that the group has lost, and whose listeners or commits fail."""

from collections.abc import Sequence

import pytest
from aiokafka.errors import GroupAuthorizationFailedError
from consumer_fakes import eventually
from membership_story import Story

from contracts.progress import ReplicaState
from services.consumer.handover import Listeners


async def test_a_replica_that_the_group_has_lost_drops_everything_tells_it_and_serves_again_when_it_is_back():
    s = Story()
    await s.me._obey(None)
    await s.round(1, 0, 0, 1)
    s.since()
    s.me.lost()
    assert s.queues.held == frozenset()
    await eventually(lambda: s.group.asked == ["lost [0, 1]"])
    await s.round(5, 0, 1)
    assert s.queues.serving == (1,)
    assert s.me.state is ReplicaState.MEMBER


@pytest.mark.parametrize("listener", ["on_partitions_taken", "on_partitions_released", "on_partitions_lost"])
async def test_a_listener_that_raises_ends_the_replica_instead_of_leaving_it_idle(listener):
    async def raises(partitions: Sequence[int]) -> None:
        raise LookupError("no state for them")

    s = Story()
    s.handover.listeners = Listeners(**{listener: raises})
    await s.me._obey(None)
    if listener == "on_partitions_lost":
        await s.round(1, 0, 0)
        s.me.lost()
    else:
        s.queues.open({9: 0}, 1)
        with pytest.raises(LookupError):
            await s.round(1, 0, 0)
    await eventually(s.failed.done)
    assert isinstance(s.failed.exception(), LookupError)


async def test_eager_a_stop_that_fails_ends_the_replica():
    s = Story(eager=True)
    await s.me._obey(None)
    await s.round(1, 0, 0)
    s.serve(0)
    s.group.answers = [GroupAuthorizationFailedError("group")]
    await s.me.before_round()
    assert isinstance(s.failed.exception(), GroupAuthorizationFailedError)
