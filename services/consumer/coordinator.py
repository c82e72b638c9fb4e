"""aiokafka's group coordinator with what a planned group needs: rounds that stop nobody, fenced commits, evictions.

aiokafka builds its coordinator itself; `adopt` swaps the class of the fresh instance. A contract test lists everything
private that this package uses of aiokafka 0.14.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, Protocol

from aiokafka.client import ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import KafkaError, NoError, NotCoordinatorForGroupError, RebalanceInProgressError
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from services.consumer.lease import Lease
from services.consumer.poller import change, recall
from services.consumer.requests import stable_offset_fetch, stable_offsets

log = logging.getLogger(__name__)

LEAVE_DEADLINE_S: Final = 2.0  # a leave that is not answered is left to the session time-out
POLL_S: Final = 0.005
NO_MEMBERS: Final = ("Empty", "Dead")
"""Group states in which nobody is a member; Kafka calls a group that does not exist Dead."""


class Conduct(Protocol):
    """The actions of a replica around each round."""

    async def before_round(self) -> None:
        """The group is about to be joined (once per sequence of attempts)."""

    async def carry_out(self, partitions: frozenset[int], generation: int) -> None:
        """The round is complete: these are this member's partitions. Never raises."""

    def lost(self) -> None:
        """The group no longer knows this member: what it owned is gone, now."""


class PlanCoordinator(GroupCoordinator):  # type: ignore[misc]  # aiokafka ships no types
    """Kafka's classic protocol; what is stopped and handed over is the conduct's affair."""

    joining = False  # from just before JoinGroup is sent until the assignment is known
    conduct: Conduct
    lease: Lease
    """Renewed by whatever the group answers that proves the membership."""
    out_of_range: Callable[[int], None]
    """Told of a partition whose next offset the broker does not have."""
    is_foreign: Callable[[str], bool]
    """Tells by what is kept beside an offset whether it is one of another log."""
    _consumer: Any
    _topic: str

    @classmethod
    def adopt(cls, consumer: Any, topic: str) -> "PlanCoordinator":
        """Return the consumer's coordinator as one of ours. Call between start() and the first subscribe()."""
        assert consumer._subscription.subscription is None, "adopt the coordinator before subscribing"
        coordinator: PlanCoordinator = consumer._coordinator
        coordinator.__class__ = cls
        coordinator._consumer, coordinator._topic = consumer, topic
        return coordinator

    # What aiokafka calls.

    async def _on_join_prepare(self, previous_assignment: Any) -> None:
        self._group_subscription = None
        await self.conduct.before_round()

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
        decoded = ConsumerProtocol.ASSIGNMENT.decode(assignment)
        self._lookup_assignor(protocol).on_assignment(decoded)
        mine = frozenset(partition for _, partitions in decoded.assignment for partition in partitions)
        await self.conduct.carry_out(mine, generation)

    async def _do_commit_offsets(self, assignment: Any, offsets: Any) -> None:
        if self.joining:  # it would queue behind JoinGroup and arrive with a stale generation
            raise RebalanceInProgressError(self.group_id)
        await super()._do_commit_offsets(assignment, offsets)

    async def _do_fetch_commit_offsets(self, partitions: Collection[Any]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return offsets that no transaction can change any more. Raises KafkaError while one may."""
        answer = await self._send_req(stable_offset_fetch(self.group_id, partitions))
        try:
            return stable_offsets(answer, self.group_id)
        except NotCoordinatorForGroupError:
            self.coordinator_dead()
            raise

    async def _send_req(self, request: Any) -> Any:
        asked_s, in_round = self.lease.now_s(), self.joining
        with await self._patience(request):
            answer = await super()._send_req(request)
        self._note_proof(request, answer, asked_s, in_round)
        return answer

    def reset_generation(self) -> None:
        """Forget the membership: evicted, fenced, or left."""
        if self.generation > 0 and not self._closing.done():
            if self.fetched:
                change(self._consumer, set(), {}, self.out_of_range)
            self.conduct.lost()
        super().reset_generation()

    # What the replica calls.

    async def probe(self) -> None:
        """Ask the group whether this is a member, and whether a round is on, without waiting for the next heartbeat."""
        if self.generation <= 0 or self.coordinator_id is None:
            return
        if not self.joining:
            await self._do_heartbeat()
            return
        # aiokafka's own would wait behind JoinGroup, and take what a round says that has just ended for an eviction.
        request, asked_s = HeartbeatRequest(self.group_id, self.generation, self.member_id), self.lease.now_s()
        node = self.coordinator_id
        try:
            answer = await self._client.send(node, request, group=ConnectionGroup.DEFAULT)
        except KafkaError:
            # JoinGroup would wait on for a coordinator that is gone: cut off, it is sent again to whoever is it by now.
            if (waiting := self._client._conns.get((node, ConnectionGroup.COORDINATION))) is not None:
                waiting.close(reason=CloseReason.CONNECTION_TIMEOUT)
            raise
        self._note_proof(request, answer, asked_s, in_round=True)

    @property
    def fetched(self) -> frozenset[int]:
        """Partitions that are fetched now."""
        return frozenset(at.partition for at in self._subscription.assigned_partitions())

    async def fetch(self, partitions: Collection[int], positions: Mapping[int, int]) -> None:
        """Fetch exactly `partitions`, those in `positions` from there."""
        at = {TopicPartition(self._topic, partition): offset for partition, offset in positions.items()}
        wanted = {TopicPartition(self._topic, partition) for partition in partitions}
        is_more = not self.fetched.issuperset(partitions)
        if change(self._consumer, wanted, at, self.out_of_range):
            await self._stop_commit_offsets_refresh_task()
            self.start_commit_offsets_refresh_task(self._subscription.subscription.assignment)
        elif is_more:
            recall(self._consumer)

    async def committed(self, partitions: Collection[int]) -> tuple[dict[int, int], set[int]]:
        """Return the group's offsets of `partitions`, where there are any, and those whose offsets are of another log.

        Both are empty when the broker does not say now.
        """
        if not partitions:
            return {}, set()
        try:
            found = await self._do_fetch_commit_offsets({TopicPartition(self._topic, one) for one in partitions})
        except KafkaError as unanswered:
            log.warning("committed offsets are not known yet (%r); the fetcher asks again", unanswered)
            return {}, set()
        foreign = {at.partition for at, offset in found.items() if self.is_foreign(offset.metadata)}
        return {at.partition: offset.offset for at, offset in found.items()}, foreign

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
            await self.ensure_coordinator_known()
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

    def brokers(self) -> list[int]:
        """Return the nodes of the cluster, as far as they are known."""
        return [broker.nodeId for broker in self._client.cluster.brokers()]

    async def ask(self, node: int) -> None:
        """Return when the broker answers. Raises KafkaError where it is not there."""
        await self._client.send(node, MetadataRequest([]))

    def look_for_partitions(self) -> None:
        """Ask for the topic's metadata: there are more partitions than this client knows."""
        self._client.force_metadata_update()

    async def _patience(self, request: Any) -> AbstractContextManager[None]:
        """Give an answer that waits for the other members the time of a round, beyond that of any request."""
        node, way = self.coordinator_id, ConnectionGroup.COORDINATION
        waits = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        if not waits or node is None or not await self._client.ready(node, group=way):
            return nullcontext()
        return _longer(self._client._conns[node, way], self._rebalance_timeout_ms / 1000)

    def _note_proof(self, request: Any, answer: Any, asked_s: float, in_round: bool) -> None:
        """Renew the lease if `answer` proves the membership.

        in_round: the request was sent while joining. SyncGroup's answer, and JoinGroup's, say that it has arrived; a
        heartbeat's does not, and a commit's does not even say whether a round is on.
        """
        match request:
            case JoinGroupRequest() | SyncGroupRequest() if answer.error_code == NoError.errno:
                self.lease.renew(asked_s)
            case HeartbeatRequest() if answer.error_code == NoError.errno:
                self.lease.renew(asked_s, in_round=in_round)
            case HeartbeatRequest() if answer.error_code == RebalanceInProgressError.errno:
                self.lease.renew(asked_s, in_round=True)
            case OffsetCommitRequest() if all(code == NoError.errno for _, codes in answer.topics for _, code in codes):
                self.lease.renew(asked_s, in_round=True)

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


@contextmanager
def _longer(connection: Any, by_s: float) -> Iterator[None]:
    """Give requests on `connection` that much more time."""
    usual_s = connection._request_timeout
    connection._request_timeout = usual_s + by_s
    try:
        yield
    finally:
        connection._request_timeout = usual_s
