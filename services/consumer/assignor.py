"""The group's assignor. Members send their metadata, and the leader decides the rebalance by the newest plan it has."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from contracts.clock import monotonic_s
from contracts.fields import MAX_EPOCH_LEAD
from contracts.plan import ASSIGNOR, PlanRecord
from contracts.validation import DECODE_ERRORS
from services.consumer.rebalance import (
    NO_GENERATION,
    AssignmentMetadata,
    HandedOverOffset,
    MemberMetadata,
    Share,
    decide,
)

PROTOCOL_VERSION: Final = 0
"""Version of Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment. Only their user data is our own."""
YIELD_AFTER_S: Final = 0.7  # a leader that cannot read a newer plan for this long leaves, so that another one leads

log = logging.getLogger(__name__)


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """The assignor of one consumer. aiokafka calls it synchronously inside a rebalance, so it never waits."""

    name = ASSIGNOR

    def __init__(
        self,
        replica: str,
        incarnation: str,
        newest_plan: Callable[[], PlanRecord | None],
        *,
        is_eager: bool,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._replica, self._incarnation, self._newest_plan = replica, incarnation, newest_plan
        self._is_eager, self._clock = is_eager, clock
        self._absent_since_s: dict[str, float] = {}
        self._topic = ""
        self._behind = (0, 0.0)
        """Epoch of this leader's newest plan, and monotonic time (s) since which other members know a later one."""
        self.gives_up_lead = False
        """Whether this leader has lacked a plan that other members know for YIELD_AFTER_S."""
        self.refused: dict[str, str] = {}
        """Member id → why this leader gives that member no partitions. Empty if this member does not lead."""
        self.owned_partitions: Callable[[], Iterable[int]] = tuple
        """Returns the partitions that this replica owns."""
        self.group_generation: Callable[[], int] = lambda: -1
        """Returns the group's generation. On the leader it is the one that the rebalance begins."""
        self.on_unknown_partitions: Callable[[], None] = lambda: None
        """Called if the plan names partitions that this client does not know."""
        self.generation = -1
        """Generation of the current assignment; -1 without one."""
        self.first_generation = NO_GENERATION
        """Generation of the first assignment."""
        self.handed_over: dict[int, HandedOverOffset] = {}
        """Partitions given up since the current assignment."""
        self.is_draining = False
        self.has_announced_drain = False
        """Whether the last JoinGroup contained `is_draining`."""
        self.last_assignment = AssignmentMetadata()

    def metadata(self, topics: Iterable[str]) -> Any:
        """Return this member's metadata. Called for each JoinGroup."""
        (self._topic,) = topics
        self.has_announced_drain, self.refused, self.gives_up_lead = self.is_draining, {}, False
        plan = self._newest_plan()
        own_metadata = MemberMetadata(
            name=self._replica,
            incarnation=self._incarnation,
            epoch=self.last_assignment.epoch,
            newest_epoch=plan.epoch if plan else 0,
            owned=tuple(sorted(self.owned_partitions())),
            generation=self.generation,
            first_generation=self.first_generation,
            handed_over=self.handed_over,
            is_draining=self.is_draining,
            is_eager=self._is_eager,
            follow_up_of=self.last_assignment.kind if self.last_assignment.rejoin else None,
            follow_ups=self.last_assignment.follow_ups,
        )
        return ConsumerProtocolMemberMetadata(PROTOCOL_VERSION, [self._topic], msgspec.json.encode(own_metadata))

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Decide the rebalance for the one topic that this group reads. Called on the group's leader.

        members: member id → subscription; None if it cannot be read.
        """
        topic = self.topic_of(members)
        metadata = self._accept(members, topic)
        # The leader may not know all partitions, if it has no topic metadata yet or the topic has grown.
        claimed = {partition for member in metadata.values() for partition in member.owned}
        partitions = sorted(claimed | set(cluster.partitions_for_topic(topic) or ()))
        plan = self._newest_plan()
        self._note_newer_plans(plan.epoch if plan else 0, metadata)
        if plan is not None and not plan.is_for(topic):  # no member reads its topic
            plan = msgspec.structs.replace(plan, replicas=(), assignment=None)
        if plan is not None and plan.assignment and max(plan.assignment) > max(partitions, default=-1):
            self.on_unknown_partitions()
        absent_in_grace = self._absent_in_grace(plan, {member.name for member in metadata.values()})
        shares = decide(plan, metadata, partitions, self.group_generation(), absent_in_grace)
        for member_id, reason in self.refused.items():
            shares[member_id] = Share((), AssignmentMetadata(epoch=plan.epoch if plan else 0, refused=reason))
        return {
            member_id: ConsumerProtocolMemberAssignment(
                PROTOCOL_VERSION,
                [(topic, list(share.partitions))] if share.partitions else [],
                msgspec.json.encode(share.assignment),
            )
            for member_id, share in shares.items()
        }

    def topic_of(self, members: Mapping[str, Any]) -> str:
        """Return the topic of the plan, if a member reads it; else the topic that most members read."""
        topics = Counter(topic for member in members.values() if member for topic in member.subscription)
        if (plan := self._newest_plan()) is not None and plan.topic in topics:
            return plan.topic
        return max(topics, key=lambda topic: (topics[topic], topic == self._topic), default=self._topic)

    def _accept(self, members: Mapping[str, Any], topic: str) -> dict[str, MemberMetadata]:
        """Return the metadata of the members that may get partitions, and note why others may not."""
        decoded = {member_id: decode_metadata(member, topic) for member_id, member in members.items()}
        self.refused = {member_id: reason for member_id, reason in decoded.items() if isinstance(reason, str)}
        for member_id, reason in self.refused.items():
            log.warning("Member %s of the group gets no partitions: %s", member_id, reason)
        return {member_id: member for member_id, member in decoded.items() if isinstance(member, MemberMetadata)}

    def _note_newer_plans(self, epoch: int, metadata: Mapping[str, MemberMetadata]) -> None:
        """Note whether members know a plan after `epoch` that this leader cannot read. Impossible ones are ignored."""
        now_s, knows = self._clock(), any(epoch < m.newest_epoch <= epoch + MAX_EPOCH_LEAD for m in metadata.values())
        if not knows or self._behind[0] != epoch:
            self._behind = epoch, now_s
        self.gives_up_lead = knows and now_s - self._behind[1] > YIELD_AFTER_S
        if self.gives_up_lead:
            self._behind = epoch, now_s + 30.0  # no other warning soon, because there may be no such plan

    def on_assignment(self, assignment: Any) -> None:
        """Store the metadata of this member's assignment."""
        self.last_assignment = AssignmentMetadata()
        with suppress(*DECODE_ERRORS):  # if another program leads, the assignment is valid and has no metadata
            self.last_assignment = msgspec.json.decode(assignment.user_data or b"{}", type=AssignmentMetadata)

    def start_generation(self, generation: int) -> None:
        """Note that the group has completed the rebalance `generation` with this member."""
        self.generation, self.handed_over = generation, {}
        self.first_generation = min(self.first_generation, generation)

    def forget(self) -> None:
        """Note that this member has left the group and owns nothing."""
        self.generation, self.handed_over, self.last_assignment = -1, {}, AssignmentMetadata()

    def grace_left_s(self) -> float:
        """Return the seconds until partitions that wait for an absent replica go to others. 0: none wait.

        It is 0 on members that did not lead the last rebalance.
        """
        plan = self._newest_plan()
        if plan is None or not self._absent_since_s:
            return 0.0
        return max(0.0, max(self._absent_since_s.values()) + plan.grace_s - self._clock())

    def _absent_in_grace(self, plan: PlanRecord | None, present: set[str]) -> list[str]:
        missing = set(plan.replicas) - present if plan is not None and plan.grace_s > 0 else set()
        now_s = self._clock()
        self._absent_since_s = {name: self._absent_since_s.get(name, now_s) for name in missing}
        return [name for name, since_s in self._absent_since_s.items() if plan and now_s - since_s < plan.grace_s]


def decode_subscription(encoded: bytes) -> Any:
    """Return a member's subscription; None if it cannot be read, or if the name of a topic is not text."""
    with suppress(Exception):  # another program may send any bytes
        found = ConsumerProtocolMemberMetadata.decode(encoded)
        return found if all(isinstance(topic, str) for topic in found.subscription) else None
    return None


def decode_metadata(member: Any, topic: str) -> MemberMetadata | str:
    """Return a member's metadata, or why the member may not serve `topic`. member: subscription; None: not readable."""
    if member is None:
        return "its subscription cannot be read"
    if list(member.subscription) != [topic]:
        return f"it reads {', '.join(member.subscription) or 'no topic'}, the group reads {topic}"
    try:
        return msgspec.json.decode(member.user_data or b"", type=MemberMetadata)
    except DECODE_ERRORS as error:
        return f"its metadata cannot be read ({error})"
