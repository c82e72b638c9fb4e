"""aiokafka's group coordinator with what a planned group needs: fenced commits, leaving while joining, evictions.

aiokafka builds its coordinator itself; `adopt` swaps the class of the fresh instance. Everything private that this
package uses of aiokafka 0.14 is named in tests/contract/test_aiokafka_private_surface.py.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any, Final

from aiokafka.client import ConnectionGroup
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaError, RebalanceInProgressError
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.group import LeaveGroupRequest

log = logging.getLogger(__name__)

LEAVE_DEADLINE_S: Final = 2.0
"""A leave that is not answered is left to the session time-out."""
POLL_S: Final = 0.005
NO_MEMBERS: Final = ("Empty", "Dead")
"""Group states in which nobody is a member; Kafka calls a group that does not exist Dead."""


class PlanCoordinator(GroupCoordinator):  # type: ignore[misc]  # aiokafka ships no types
    """Kafka's classic protocol, eager."""

    joining = False
    """From just before JoinGroup is sent until the assignment is known."""

    @classmethod
    def adopt(cls, consumer: Any) -> "PlanCoordinator":
        """Return the consumer's coordinator as one of ours. Call between start() and the first subscribe()."""
        assert consumer._subscription.subscription is None, "adopt the coordinator before subscribing"
        coordinator: PlanCoordinator = consumer._coordinator
        coordinator.__class__ = cls
        return coordinator

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        if not subscription.active:  # left meanwhile; stock aiokafka would still join, and the group would wait for it
            return False
        self.joining = True
        try:
            return bool(await super()._do_rejoin_group(subscription))
        finally:
            self.joining = False

    async def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        self.joining = False  # SyncGroup is answered: commits are legal again
        await super()._on_join_complete(generation, member_id, protocol, assignment)

    async def _do_commit_offsets(self, assignment: Any, offsets: Any) -> None:
        if self.joining:  # it would queue behind JoinGroup and arrive with a stale generation
            raise RebalanceInProgressError(self.group_id)
        await super()._do_commit_offsets(assignment, offsets)

    async def leave(self) -> None:
        """Leave the group at once, also in the middle of a join. The subscription is gone afterwards."""
        deadline = time.monotonic() + LEAVE_DEADLINE_S
        # The broker has made a member whose id we are about to learn; only then can it leave.
        while self.joining and not self.member_id and time.monotonic() < deadline:  # noqa: ASYNC110  # aiokafka tells nobody
            await asyncio.sleep(POLL_S)
        member_id = self.member_id
        self._subscription.unsubscribe()
        if member_id:
            # A pending JoinGroup blocks its connection until the round ends, so the leave takes the other one.
            way = ConnectionGroup.DEFAULT if self.joining else ConnectionGroup.COORDINATION
            await self._leave_for(member_id, way)
        self.reset_generation()

    async def evict(self, member_id: str) -> None:
        """Leave the group on behalf of a member known to be dead: nobody waits for its session. Idempotent."""
        if member_id != self.member_id:
            await self._leave_for(member_id, ConnectionGroup.DEFAULT)

    async def group_is_empty(self) -> bool:
        """Return whether the group has no member; False when the broker does not say."""
        try:
            await self.ensure_coordinator_known()
            answer = await self._client.send(self.coordinator_id, DescribeGroupsRequest([self.group_id]))
        except KafkaError:
            return False
        error_code, _, state, *_ = answer.groups[0]
        return bool(error_code == 0 and state in NO_MEMBERS)

    async def _leave_for(self, member_id: str, way: Any) -> None:
        if self.coordinator_id is None:
            return
        request = self._client.send(self.coordinator_id, LeaveGroupRequest(self.group_id, member_id), group=way)
        try:
            await asyncio.wait_for(request, LEAVE_DEADLINE_S)
        except (KafkaError, TimeoutError) as unanswered:
            log.warning(
                "leaving the group for %s was not answered (%r); its session will run out", member_id, unanswered
            )


def unseen(evictions: Iterable[Any], seen: set[str]) -> list[str]:
    """Return the member ids of `evictions` that are not in `seen`, and add them to it."""
    fresh = [each.member_id for each in evictions if each.member_id and each.member_id not in seen]
    seen.update(fresh)
    return fresh
