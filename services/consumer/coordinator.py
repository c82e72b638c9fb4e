"""aiokafka's group coordinator, extended for planned groups: incremental rebalances, fenced commits, evictions.

aiokafka builds its coordinator itself. `adopt` replaces the class of the new instance. A contract test lists all
private names of aiokafka 0.14 that this package uses.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

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

from services.consumer.assignor import decode_subscription
from services.consumer.lease import Lease
from services.consumer.poller import change_assignment
from services.consumer.requests import stable_offset_fetch, stable_offsets

if TYPE_CHECKING:
    from services.consumer.membership import Membership

log = logging.getLogger(__name__)

LEAVE_DEADLINE_S: Final = 2.0  # without an answer the session time-out removes the member
POLL_S: Final = 0.005
MEMBERLESS_STATES: Final = ("Empty", "Dead")
"""States of a group without members; Kafka reports a group that does not exist as Dead."""


class PlanCoordinator(GroupCoordinator):  # type: ignore[misc]  # aiokafka ships no types
    """Kafka's classic group protocol. The callbacks decide what is stopped and handed over."""

    is_joining = False  # from just before JoinGroup is sent until the assignment is known
    callbacks: "Membership"
    """Prepares each join, carries out each assignment, and is notified if the group has removed this member."""
    lease: Lease
    """Renewed by every answer of the group that proves the membership."""
    on_out_of_range: Callable[[int], None]
    """Called with a partition whose next offset the broker does not have."""
    is_foreign: Callable[[str], bool]
    """Returns, by the metadata of a committed offset, whether that offset belongs to another log."""
    _consumer: Any
    _topic: str
    _group_subscription: Any
    _retry_backoff_ms: int

    @classmethod
    def adopt(cls, consumer: Any, topic: str) -> "PlanCoordinator":
        """Return the consumer's coordinator as a PlanCoordinator. Call between start() and the first subscribe()."""
        assert consumer._subscription.subscription is None, "adopt the coordinator before subscribing"
        coordinator: PlanCoordinator = consumer._coordinator
        coordinator.__class__ = cls
        coordinator._consumer, coordinator._topic = consumer, topic
        return coordinator

    # Methods that aiokafka calls

    async def _on_join_prepare(self, previous_assignment: Any) -> None:
        self._group_subscription = None
        await self.callbacks.before_rebalance()

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        if not subscription.active:  # left meanwhile: aiokafka would still join, and the group would wait for it
            return False
        self.is_joining, backoff_ms = True, self._retry_backoff_ms
        try:
            return bool(await super()._do_rejoin_group(subscription))
        finally:
            self.is_joining, self._retry_backoff_ms = False, backoff_ms

    async def _perform_assignment(self, response: Any) -> Any:
        """Decide among all members. In aiokafka's own method, one unreadable member would fail each rebalance."""
        assignor: Any = self._lookup_assignor(response.group_protocol)
        members = {member_id: decode_subscription(encoded) for member_id, *_, encoded in response.members}
        self._group_subscription = {self._topic, assignor.topic_of(members)}
        self._client.set_topics(self._group_subscription)
        await self._client._maybe_wait_metadata()
        assignments = assignor.assign(self._cluster, members)
        self._metadata_snapshot = self._get_metadata_snapshot()
        return assignments

    async def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        self.is_joining = False  # SyncGroup is answered: commits are legal again
        decoded = ConsumerProtocol.ASSIGNMENT.decode(assignment)
        self._lookup_assignor(protocol).on_assignment(decoded)
        partitions = frozenset(p for topic, own in decoded.assignment if topic == self._topic for p in own)
        await self.callbacks.apply_assignment(partitions, generation)

    async def _stop_heartbeat_task(self) -> None:
        await asyncio.sleep(0)  # aiokafka awaits the cancelled task, which raises if it has not taken its first step
        await super()._stop_heartbeat_task()

    async def _do_commit_offsets(self, assignment: Any, offsets: Any) -> None:
        if self.is_joining:  # it would queue behind JoinGroup and arrive with a stale generation
            raise RebalanceInProgressError(self.group_id)
        await super()._do_commit_offsets(assignment, offsets)

    async def _do_fetch_commit_offsets(self, partitions: Collection[Any]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets. Raises KafkaError while an open transaction may change one."""
        answer = await self._send_req(stable_offset_fetch(self.group_id, partitions))
        try:
            return stable_offsets(answer, self.group_id)
        except NotCoordinatorForGroupError:
            self.coordinator_dead()
            raise

    async def _send_req(self, request: Any) -> Any:
        sent_s, in_rebalance = self.lease.now_s(), self.is_joining
        async with self._extended_timeout(request):
            answer = await super()._send_req(request)
        self._renew_lease(request, answer, sent_s, in_rebalance)
        if isinstance(request, SyncGroupRequest) and answer.error_code == RebalanceInProgressError.errno:
            self._retry_backoff_ms = 0  # others have joined again already, and wait for this member
        return answer

    def reset_generation(self) -> None:
        """Forget the membership, after an eviction, a fencing error or a leave."""
        if self.generation > 0 and not self._closing.done():
            if self.fetched_partitions:
                change_assignment(self._consumer, set(), {}, self.on_out_of_range)
            self.callbacks.on_membership_lost()
        super().reset_generation()

    # Methods that the replica calls

    async def probe(self) -> None:
        """Send a heartbeat now. Its answer shows whether this is a member and whether a rebalance is in progress."""
        if self.generation <= 0 or self.coordinator_id is None:
            return
        if not self.is_joining:
            await self._do_heartbeat()
            return
        # aiokafka's heartbeat would wait behind JoinGroup, and treat the error of a completed rebalance as an eviction.
        request, sent_s = HeartbeatRequest(self.group_id, self.generation, self.member_id), self.lease.now_s()
        node = self.coordinator_id
        try:
            answer = await self._client.send(node, request, group=ConnectionGroup.DEFAULT)
        except KafkaError:
            # JoinGroup would wait for a coordinator that is gone; once closed, it is sent to the current coordinator.
            if (join_connection := self._client._conns.get((node, ConnectionGroup.COORDINATION))) is not None:
                join_connection.close(reason=CloseReason.CONNECTION_TIMEOUT)
            raise
        self._renew_lease(request, answer, sent_s, in_rebalance=True)

    @property
    def fetched_partitions(self) -> frozenset[int]:
        """Partitions that aiokafka fetches now."""
        return frozenset(at.partition for at in self._subscription.assigned_partitions())

    @property
    def next_fetch_offsets(self) -> dict[int, int]:
        """Partition → offset of its next fetch, if known. Between two polls, all earlier events are in the queues."""
        assigned = self._subscription.subscription and self._subscription.subscription.assignment
        states = {at.partition: assigned.state_value(at) for at in assigned.tps} if assigned else {}
        return {partition: state.position for partition, state in states.items() if state.has_valid_position}

    async def fetch(self, partitions: Collection[int], positions: Mapping[int, int]) -> None:
        """Fetch exactly `partitions` from now on, starting at `positions` where given."""
        starts = {TopicPartition(self._topic, partition): offset for partition, offset in positions.items()}
        targets = {TopicPartition(self._topic, partition) for partition in partitions}
        has_new = not self.fetched_partitions.issuperset(partitions)
        if change_assignment(self._consumer, targets, starts, self.on_out_of_range):
            await self._stop_commit_offsets_refresh_task()
            self.start_commit_offsets_refresh_task(self._subscription.subscription.assignment)
        elif has_new:
            self._client.recall()  # new partitions are fetched at once

    async def committed_offsets(self, partitions: Collection[int]) -> tuple[dict[int, int], set[int]]:
        """Return the committed offsets of `partitions`, and the partitions whose offset belongs to another log.

        Both are empty if the broker does not answer.
        """
        if not partitions:
            return {}, set()
        try:
            offsets = await self._do_fetch_commit_offsets({TopicPartition(self._topic, p) for p in partitions})
        except KafkaError as error:
            log.warning("Committed offsets are not known yet (%r); aiokafka's fetcher will query them", error)
            return {}, set()
        foreign = {at.partition for at, offset in offsets.items() if self.is_foreign(offset.metadata)}
        return {at.partition: offset.offset for at, offset in offsets.items()}, foreign

    async def leave(self) -> None:
        """Leave the group at once, also in the middle of a join, and end the subscription."""
        deadline = time.monotonic() + LEAVE_DEADLINE_S
        # The broker may have created a member whose id has not arrived yet; without the id it cannot leave.
        while self.is_joining and not self.member_id and time.monotonic() < deadline:  # noqa: ASYNC110  # aiokafka has no event for it
            await asyncio.sleep(POLL_S)
        member_id = self.member_id
        self._subscription.unsubscribe()
        if member_id:
            # A pending JoinGroup blocks its connection until the rebalance ends, so the leave uses the other one.
            group = ConnectionGroup.DEFAULT if self.is_joining else ConnectionGroup.COORDINATION
            await self._leave_for(member_id, group)
        self.reset_generation()

    async def evict(self, member_id: str) -> None:
        """Remove a dead member from the group before its session expires. Idempotent."""
        if member_id != self.member_id:
            await self.ensure_coordinator_known()
            await self._leave_for(member_id, ConnectionGroup.DEFAULT)

    async def group_is_empty(self) -> bool:
        """Return whether the group has no members; False if the broker does not answer."""
        try:
            await self.ensure_coordinator_known()
            answer = await self._client.send(self.coordinator_id, DescribeGroupsRequest([self.group_id]))
        except KafkaError:
            return False
        error_code, _, state, *_ = answer.groups[0]
        return bool(error_code == 0 and state in MEMBERLESS_STATES)

    def brokers(self) -> list[int]:
        """Return the known node ids of the cluster."""
        return [broker.nodeId for broker in self._client.cluster.brokers()]

    async def ping(self, node: int) -> None:
        """Return when the broker has answered. Raises KafkaError if it does not."""
        await self._client.send(node, MetadataRequest([]))

    @asynccontextmanager
    async def _extended_timeout(self, request: Any) -> AsyncIterator[None]:
        """Wait longer for an answer that the group delays until all members have joined."""
        node, group = self.coordinator_id, ConnectionGroup.COORDINATION
        waits = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        if not waits or node is None or not await self._client.ready(node, group=group):
            yield
            return
        connection, extra_s = self._client._conns[node, group], self._rebalance_timeout_ms / 1000
        connection._request_timeout += extra_s
        try:
            yield
        finally:
            connection._request_timeout -= extra_s

    def _renew_lease(self, request: Any, answer: Any, sent_s: float, in_rebalance: bool) -> None:
        """Renew the lease if `answer` proves the membership.

        in_rebalance: the request was sent while joining. An answer to JoinGroup or SyncGroup proves that the rebalance
        includes this member. An answer to a heartbeat does not, and that to a commit does not even exclude a rebalance.
        """
        match request:
            case JoinGroupRequest() | SyncGroupRequest() if answer.error_code == NoError.errno:
                self.lease.renew(sent_s)
            case HeartbeatRequest() if answer.error_code == NoError.errno:
                self.lease.renew(sent_s, in_rebalance=in_rebalance)
            case HeartbeatRequest() if answer.error_code == RebalanceInProgressError.errno:
                self.lease.renew(sent_s, in_rebalance=True)
            case OffsetCommitRequest() if all(code == NoError.errno for _, codes in answer.topics for _, code in codes):
                self.lease.renew(sent_s, in_rebalance=True)

    async def _leave_for(self, member_id: str, group: Any) -> None:
        if self.coordinator_id is None:
            return
        request = self._client.send(self.coordinator_id, LeaveGroupRequest(self.group_id, member_id), group=group)
        try:
            async with asyncio.timeout(LEAVE_DEADLINE_S):
                await request
        except (KafkaError, TimeoutError) as error:
            log.warning("Removing %s from the group failed (%r); its session will expire instead", member_id, error)
