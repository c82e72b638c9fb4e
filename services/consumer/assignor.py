"""The group's assignor: members send their metadata, and the leader decides the rebalance by the newest plan it has."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from contracts.clock import monotonic_s
from contracts.plan import ASSIGNOR, PlanRecord
from contracts.validation import DECODE_ERRORS
from services.consumer.rebalance import NO_GENERATION, AssignmentMetadata, HandedOverOffset, MemberMetadata, decide

PROTOCOL_VERSION: Final = 0
"""Version of Kafka's ConsumerProtocolSubscription and -Assignment in which only the user data is ours."""
PLAN_REQUEST_DELAY_S: Final = 0.3
"""How long a leader without the newest plan waits before it requests that plan from a member. Plans are large, and
usually the leader reads the plan itself at any moment."""


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
        self._replica = replica
        self._incarnation = incarnation
        self._newest_plan = newest_plan
        self._is_eager = is_eager
        self._clock = clock
        self._absent_since_s: dict[str, float] = {}
        self._behind_since_s: float | None = None
        """When it first knew, as leader, of a plan that it has not read. None: it has read the newest."""
        self.on_plan_passed: Callable[[PlanRecord], None] = lambda plan: None
        """Called with a plan that a member has passed on."""
        self.owned_partitions: Callable[[], Iterable[int]] = tuple
        """Returns the partitions that this replica owns."""
        self.group_generation: Callable[[], int] = lambda: -1
        """Returns the group's generation; on the leader, the one that the rebalance begins."""
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
        self.has_announced_drain = self.is_draining
        plan = self._newest_plan()
        own_metadata = MemberMetadata(
            name=self._replica,
            incarnation=self._incarnation,
            epoch=self.last_assignment.epoch,
            newest_epoch=plan.epoch if plan else 0,
            plan=plan if self.last_assignment.requests_plan else None,
            owned=tuple(sorted(self.owned_partitions())),
            generation=self.generation,
            first_generation=self.first_generation,
            handed_over=self.handed_over,
            is_draining=self.is_draining,
            is_eager=self._is_eager,
            follow_up_of=self.last_assignment.kind if self.last_assignment.rejoin else None,
            follow_ups=self.last_assignment.follow_ups,
        )
        return ConsumerProtocolMemberMetadata(PROTOCOL_VERSION, sorted(topics), msgspec.json.encode(own_metadata))

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Decide the rebalance for the one topic that this group reads. Called on the group's leader."""
        metadata = {member_id: decode_metadata(member_id, member.user_data) for member_id, member in members.items()}
        (topic,) = {topic for member in members.values() for topic in member.subscription}  # a plan has one topic
        # The leader may not know all partitions, if it has no topic metadata yet or the topic has grown.
        claimed = {partition for member in metadata.values() for partition in member.owned}
        partitions = sorted(claimed | set(cluster.partitions_for_topic(topic) or ()))
        for member in metadata.values():
            if member.plan is not None:
                self.on_plan_passed(member.plan)
        plan = self._newest_plan()
        if plan is not None and plan.assignment and max(plan.assignment) > max(partitions, default=-1):
            self.on_unknown_partitions()
        absent_in_grace = self._absent_in_grace(plan, {member.name for member in metadata.values()})
        shares = decide(plan, metadata, partitions, self.group_generation(), absent_in_grace)
        plan_source = self._plan_source(plan, metadata)
        return {
            member_id: ConsumerProtocolMemberAssignment(
                PROTOCOL_VERSION,
                [(topic, list(share.partitions))] if share.partitions else [],
                msgspec.json.encode(msgspec.structs.replace(share.assignment, requests_plan=member_id == plan_source)),
            )
            for member_id, share in shares.items()
        }

    def on_assignment(self, assignment: Any) -> None:
        """Store the metadata of this member's assignment."""
        try:
            self.last_assignment = msgspec.json.decode(assignment.user_data or b"{}", type=AssignmentMetadata)
        except DECODE_ERRORS:  # the leader is another program: the assignment is valid, its metadata unknown
            self.last_assignment = AssignmentMetadata()

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

    def _plan_source(self, plan: PlanRecord | None, metadata: Mapping[str, MemberMetadata]) -> str | None:
        """Return the member that should pass its plan to this leader. None: no request is due."""
        source = max(metadata, key=lambda id_: metadata[id_].newest_epoch)
        if metadata[source].newest_epoch <= (plan.epoch if plan else 0):
            self._behind_since_s = None
            return None
        now_s = self._clock()
        if self._behind_since_s is None or now_s - self._behind_since_s < PLAN_REQUEST_DELAY_S:
            self._behind_since_s = self._behind_since_s or now_s
            return None
        self._behind_since_s = now_s  # restart the delay: this leader may be unable to use that plan
        return source

    def _absent_in_grace(self, plan: PlanRecord | None, present: set[str]) -> list[str]:
        missing = set(plan.replicas) - present if plan is not None and plan.grace_s > 0 else set()
        now_s = self._clock()
        self._absent_since_s = {name: self._absent_since_s.get(name, now_s) for name in missing}
        return [name for name, since_s in self._absent_since_s.items() if plan and now_s - since_s < plan.grace_s]


def decode_metadata(member_id: str, user_data: bytes | None) -> MemberMetadata:
    """Return a member's metadata. If it cannot be read, the member id replaces the name."""
    try:
        return msgspec.json.decode(user_data or b"", type=MemberMetadata)
    except DECODE_ERRORS:
        return MemberMetadata(name=member_id)
