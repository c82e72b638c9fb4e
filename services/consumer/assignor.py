"""The group's assignor: members introduce themselves, the leader decides the round by the newest plan it has read."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from contracts.plan import PlanRecord
from contracts.validation import UNDECODABLE
from services.consumer.rounds import Given, Introduction, Origin, decide

PROTOCOL_VERSION: Final = 0
"""Of Kafka's ConsumerProtocolSubscription and -Assignment: the one in which user data alone is ours."""


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """One instance for each consumer; aiokafka calls it synchronously inside a rebalance, so it never waits."""

    name = "plan"

    def __init__(
        self,
        replica: str,
        incarnation: str,
        newest_plan: Callable[[], PlanRecord | None],
        *,
        eager: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._replica = replica
        self._incarnation = incarnation
        self._newest_plan = newest_plan
        self._eager = eager
        self._clock = clock
        self._missed_s: dict[str, float] = {}
        self.claims: Callable[[], Iterable[int]] = tuple
        """Says which partitions this replica holds."""
        self.group_generation: Callable[[], int] = lambda: -1
        """Says which generation the group is in: on the leader, the one that the round begins."""
        self.partitions_wanted: Callable[[], None] = lambda: None
        """Called when the plan names partitions that this client has not heard of."""
        self.generation = -1
        """Generation of the present assignment."""
        self.given: dict[int, Given] = {}
        """What was given up since."""
        self.draining = False
        self.asked_to_drain = False
        """The group knows that this member is draining."""
        self.last = Origin()
        """What the present assignment was made from."""

    def metadata(self, topics: Iterable[str]) -> Any:
        """Return this member's introduction. Called for each JoinGroup."""
        self.asked_to_drain = self.draining
        introduction = Introduction(
            name=self._replica,
            incarnation=self._incarnation,
            epoch=self.last.epoch,
            owned=tuple(sorted(self.claims())),
            generation=self.generation,
            given=self.given,
            draining=self.draining,
            eager=self._eager,
            follows=self.last.kind if self.last.again else None,
            follow_ups=self.last.follow_ups,
        )
        return ConsumerProtocolMemberMetadata(PROTOCOL_VERSION, sorted(topics), msgspec.json.encode(introduction))

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Decide the round for the one topic this group reads. Called on the group's leader."""
        introductions = {member_id: introduced(member_id, each.user_data) for member_id, each in members.items()}
        (topic,) = {topic for each in members.values() for topic in each.subscription}  # one plan, one topic
        # A leader without metadata, or with metadata of before the topic grew, takes nothing from its owner.
        claimed = {partition for each in introductions.values() for partition in each.owned}
        partitions = sorted(claimed | set(cluster.partitions_for_topic(topic) or ()))
        plan = self._newest_plan()
        if plan is not None and plan.assignment and max(plan.assignment) > max(partitions, default=-1):
            self.partitions_wanted()
        awaited = self._awaited(plan, {each.name for each in introductions.values()})
        shares = decide(plan, introductions, partitions, self.group_generation(), awaited)
        return {
            member_id: ConsumerProtocolMemberAssignment(
                PROTOCOL_VERSION,
                [(topic, list(share.partitions))] if share.partitions else [],
                msgspec.json.encode(share.origin),
            )
            for member_id, share in shares.items()
        }

    def on_assignment(self, assignment: Any) -> None:
        """Take note of what this member's assignment was made from."""
        try:
            self.last = msgspec.json.decode(assignment.user_data or b"{}", type=Origin)
        except UNDECODABLE:  # a leader of another make: the assignment holds, its origin is unknown
            self.last = Origin()

    def forget(self) -> None:
        """The group has been left: nothing is owned any more."""
        self.generation, self.given, self.last = -1, {}, Origin()

    def grace_left_s(self) -> float:
        """Return how long until partitions that wait for an absent replica are given to others; 0: none wait.

        Known on the member that led the last round.
        """
        plan = self._newest_plan()
        if plan is None or not self._missed_s:
            return 0.0
        return max(0.0, max(self._missed_s.values()) + plan.grace_s - self._clock())

    def _awaited(self, plan: PlanRecord | None, present: set[str]) -> list[str]:
        """Return the absent planned replicas for whose return there is still time."""
        missing = set(plan.replicas) - present if plan is not None and plan.grace_s > 0 else set()
        now_s = self._clock()
        self._missed_s = {name: self._missed_s.get(name, now_s) for name in missing}
        return [name for name, since_s in self._missed_s.items() if plan and now_s - since_s < plan.grace_s]


def introduced(member_id: str, user_data: bytes | None) -> Introduction:
    """Read a member's introduction; one that cannot be read goes by its member id."""
    try:
        return msgspec.json.decode(user_data or b"", type=Introduction)
    except UNDECODABLE:
        return Introduction(name=member_id)
