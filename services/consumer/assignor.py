"""The group's assignor: members introduce themselves, the leader decides the round by the newest plan it has read."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from contracts.clock import steady_s
from contracts.plan import ASSIGNOR, PlanRecord
from contracts.validation import UNDECODABLE
from services.consumer.rebalance import NEW, Given, Introduction, Origin, decide

PROTOCOL_VERSION: Final = 0
"""Of Kafka's ConsumerProtocolSubscription and -Assignment: the one in which user data alone is ours."""
BEHIND_S: Final = 0.3
"""A leader that has known for so long of a newer plan than it has read asks a member for it; mostly it reads it any
moment, and plans are large."""


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """One instance for each consumer; aiokafka calls it synchronously inside a rebalance, so it never waits."""

    name = ASSIGNOR

    def __init__(
        self,
        replica: str,
        incarnation: str,
        newest_plan: Callable[[], PlanRecord | None],
        *,
        eager: bool,
        clock: Callable[[], float] = steady_s,
    ) -> None:
        self._replica = replica
        self._incarnation = incarnation
        self._newest_plan = newest_plan
        self._eager = eager
        self._clock = clock
        self._missed_s: dict[str, float] = {}
        self._behind_s: float | None = None
        """Since when, as leader, it knows of a plan that it has not read."""
        self.learn: Callable[[PlanRecord], None] = lambda plan: None
        """Told the plan that a member has passed on."""
        self.claims: Callable[[], Iterable[int]] = tuple
        """Says which partitions this replica holds."""
        self.group_generation: Callable[[], int] = lambda: -1
        """Says which generation the group is in: on the leader, the one that the round begins."""
        self.partitions_wanted: Callable[[], None] = lambda: None
        """Called when the plan names partitions that this client has not heard of."""
        self.generation = -1
        """Generation of the present assignment."""
        self.since = NEW
        """Generation of its first."""
        self.given: dict[int, Given] = {}
        """Partitions given up since the present one."""
        self.draining = False
        self.asked_to_drain = False
        """The group knows that this member is draining."""
        self.last = Origin()
        """The origin of the present assignment."""

    def metadata(self, topics: Iterable[str]) -> Any:
        """Return this member's introduction. Called for each JoinGroup."""
        self.asked_to_drain = self.draining
        plan = self._newest_plan()
        introduction = Introduction(
            name=self._replica,
            incarnation=self._incarnation,
            epoch=self.last.epoch,
            knows=plan.epoch if plan else 0,
            plan=plan if self.last.asks else None,
            owned=tuple(sorted(self.claims())),
            generation=self.generation,
            since=self.since,
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
        for each in introductions.values():
            if each.plan is not None:
                self.learn(each.plan)
        plan = self._newest_plan()
        if plan is not None and plan.assignment and max(plan.assignment) > max(partitions, default=-1):
            self.partitions_wanted()
        awaited = self._awaited(plan, {each.name for each in introductions.values()})
        shares = decide(plan, introductions, partitions, self.group_generation(), awaited)
        asked = self._ask(plan, introductions)
        return {
            member_id: ConsumerProtocolMemberAssignment(
                PROTOCOL_VERSION,
                [(topic, list(share.partitions))] if share.partitions else [],
                msgspec.json.encode(msgspec.structs.replace(share.origin, asks=member_id == asked)),
            )
            for member_id, share in shares.items()
        }

    def on_assignment(self, assignment: Any) -> None:
        """Take note of what this member's assignment was made from."""
        try:
            self.last = msgspec.json.decode(assignment.user_data or b"{}", type=Origin)
        except UNDECODABLE:  # a leader of another make: the assignment holds, its origin is unknown
            self.last = Origin()

    def assigned(self, generation: int) -> None:
        """The group's round `generation` is over, and has given this member an assignment."""
        self.generation, self.given = generation, {}
        self.since = min(self.since, generation)

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

    def _ask(self, plan: PlanRecord | None, introductions: Mapping[str, Introduction]) -> str | None:
        """Return the member that is to pass its plan on; None: nobody knows a newer one, or not for long."""
        newest = max(introductions, key=lambda id_: introductions[id_].knows)
        if introductions[newest].knows <= (plan.epoch if plan else 0):
            self._behind_s = None
            return None
        now_s = self._clock()
        if self._behind_s is None or now_s - self._behind_s < BEHIND_S:
            self._behind_s = self._behind_s or now_s
            return None
        self._behind_s = now_s  # asked again only then: what it knows may be of no use to this leader
        return newest

    def _awaited(self, plan: PlanRecord | None, present: set[str]) -> list[str]:
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
