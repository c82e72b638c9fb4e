"""The group's assignor: members introduce themselves, the leader places partitions by the newest plan it has read."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from contracts.plan import PlanRecord
from services.consumer.placement import Member, place

PROTOCOL_VERSION: Final = 0
"""Of Kafka's ConsumerProtocolSubscription and -Assignment: the one in which user data alone is ours."""


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    """User data of a member's subscription. Unknown fields are tolerated."""

    name: str
    incarnation: str = ""
    epoch: int = 0
    """Newest plan epoch it has read; 0 without a plan."""
    owned: tuple[int, ...] = ()
    """Partitions of its last assignment: the sticky fallback leaves them where they are."""
    generation: int = -1
    """Generation of that assignment: of two claims the later one holds."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """User data of an assignment: the plan it was made from."""

    epoch: int = 0


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """One instance for each consumer; aiokafka calls it synchronously inside a rebalance, so it never waits."""

    name = "plan"

    def __init__(self, replica: str, incarnation: str, newest_plan: Callable[[], PlanRecord | None]) -> None:
        self._replica = replica
        self._incarnation = incarnation
        self._newest_plan = newest_plan
        self.owned: tuple[int, ...] = ()
        """Partitions of the present assignment, or the last one while joining."""
        self.generation = -1
        """Generation of that assignment; the membership keeps it, because aiokafka does not tell the assignor."""
        self.epoch = 0
        """Plan epoch it was made from."""

    def metadata(self, topics: Iterable[str]) -> Any:
        """Return this member's introduction. Called for each JoinGroup."""
        plan = self._newest_plan()
        introduction = Introduction(
            name=self._replica,
            incarnation=self._incarnation,
            epoch=plan.epoch if plan else 0,
            owned=self.owned,
            generation=self.generation,
        )
        return ConsumerProtocolMemberMetadata(PROTOCOL_VERSION, sorted(topics), msgspec.json.encode(introduction))

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Place the partitions of the one topic this group reads. Called on the group's leader."""
        introductions = {member_id: introduced(member_id, each.user_data) for member_id, each in members.items()}
        topics = sorted({topic for each in members.values() for topic in each.subscription})
        plan = self._newest_plan()
        origin = msgspec.json.encode(Origin(epoch=plan.epoch if plan else 0))
        (topic,) = topics  # one plan, one topic: partition numbers alone name the partitions
        owners = place(
            plan,
            [Member(member_id, each.name, each.incarnation) for member_id, each in introductions.items()],
            sorted(cluster.partitions_for_topic(topic) or ()),
            last_owners(introductions),
        )
        return {
            member_id: ConsumerProtocolMemberAssignment(PROTOCOL_VERSION, [(topic, mine)] if mine else [], origin)
            for member_id, mine in owners.items()
        }

    def on_assignment(self, assignment: Any) -> None:
        """Take note of this member's own assignment. Called after each rebalance, before partitions are handed out."""
        self.owned = tuple(sorted(partition for _, partitions in assignment.assignment for partition in partitions))
        try:
            self.epoch = msgspec.json.decode(assignment.user_data or b"{}", type=Origin).epoch
        except msgspec.DecodeError:  # a leader of another make: the assignment holds, its origin is unknown
            self.epoch = 0

    def forget(self) -> None:
        """The group has been left: nothing is owned any more."""
        self.owned, self.generation, self.epoch = (), -1, 0


def introduced(member_id: str, user_data: bytes | None) -> Introduction:
    """Read a member's introduction; one that cannot be read goes by its member id."""
    try:
        return msgspec.json.decode(user_data or b"", type=Introduction)
    except msgspec.DecodeError:
        return Introduction(name=member_id)


def last_owners(introductions: Mapping[str, Introduction]) -> dict[int, str]:
    """Return partition → member id of the last owner. A claim from an older generation never beats a newer one."""
    claims: dict[int, tuple[int, str]] = {}
    for member_id, each in introductions.items():
        for partition in each.owned:
            claims[partition] = max(claims.get(partition, (-2, "")), (each.generation, member_id))
    return {partition: member_id for partition, (_, member_id) in claims.items()}
