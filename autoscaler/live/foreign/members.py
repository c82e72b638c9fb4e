"""Which members of a group belong to which replica, and which partitions each member gets by a plan."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from autoscaler.live.foreign.wire import Partitions, Subscription
from autoscaler.live.problems import first_few
from contracts.plan import PlanRecord

ASSIGNED: Final = "assigned"
"""Stands for the protocol of a group whose partitions the brokers assign."""
COOPERATIVE: Final = frozenset({"cooperative-sticky", ASSIGNED})
"""Protocols by which a member keeps what it owns during a rebalance, and releases only what it no longer gets."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. Two members may have the same client id."""

    id: str
    instance_id: str = ""
    client_id: str = ""
    host: str = ""
    """IP address from which it joined."""
    subscription: Subscription = field(default_factory=Subscription, compare=False)


@dataclass(frozen=True, slots=True)
class Replicas:
    """The running replicas: name → IP address, which is empty if replicas share it."""

    addresses: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, member: Member) -> str:
        """Return the replica of a member: by its instance id or client id, or else by its address. Empty: unknown.

        The ids of a replica with several members are NAME-0, NAME-1, …, as Spring Kafka forms them.
        """
        for own in filter(None, (member.instance_id, member.client_id)):
            if fits := [name for name in self.addresses if f"{own}-".startswith(f"{name}-")]:
                return max(fits, key=len)
        here = [name for name, address in self.addresses.items() if address and address == member.host]
        return here[0] if len(here) == 1 else ""

    def by_name(self, members: Iterable[Member]) -> dict[str, list[Member]]:
        """Return replica → its members, sorted by id. Members of no replica are under an empty name."""
        found: dict[str, list[Member]] = {}
        for member in sorted(members, key=lambda member: member.id):
            found.setdefault(self.name_of(member), []).append(member)
        return found


def describe_unknown(members: Collection[Member]) -> str:
    """Return a sentence about members of no replica; empty without such members."""
    listed = first_few((f"{member.client_id} at {member.host}" for member in members), ", ")
    remedy = "stop them, or set client.id or group.instance.id of a replica's consumer to its TAILPACK_REPLICA"
    return f"{len(members)} members belong to no replica and follow no plan ({listed}); {remedy}" if members else ""


def assign(
    plan: PlanRecord | None,
    replicas: Replicas,
    members: Sequence[Member],
    *,
    topic: str,
    counts: Mapping[str, int],
    previous: Mapping[str, Partitions],
    is_cooperative: bool = False,
) -> tuple[dict[str, Partitions], int]:
    """Return member id → its partitions, and the number of partitions that former owners must release first.

    Partition p of another topic follows partition p of the plan's topic, modulo its number of partitions. The range
    assignor does the same for topics with equal numbers. A topic with the number 0 cannot be read; its owners keep it.
    topic: the topic of the plan. counts: topic → number of partitions. previous: member id → its partitions before.
    """
    readers = [member for member in members if topic in member.subscription.topics]
    given: dict[str, Partitions] = {member.id: {} for member in members}
    numbers = range(max([counts.get(topic, 0), *(number + 1 for number in (plan and plan.assignment) or ())]))
    reads = {member.id: member.subscription.topics for member in members}

    def before(name: str) -> dict[int, str]:
        return {one: id_ for id_, at in previous.items() if name in reads.get(id_, ()) for one in at.get(name, ())}

    owners = _owners(plan, replicas, readers, numbers, before(topic))
    place: dict[str, dict[int, str]] = {topic: owners}
    for other in sorted({name for member in members for name in member.subscription.topics} - {topic}):
        place[other] = _follow(other, members, counts[other], owners) if counts.get(other) else before(other)
    withheld = 0
    for name, placed in place.items():
        claims: dict[int, set[str]] = {}
        for member in members if is_cooperative else ():
            for number in member.subscription.owned.get(name, ()):
                claims.setdefault(number, set()).add(member.id)
        for number, id_ in sorted(placed.items()):
            if claims.get(number, {id_}) <= {id_}:
                given[id_].setdefault(name, []).append(number)
            else:
                withheld += 1
    return given, withheld


def _owners(
    plan: PlanRecord | None,
    replicas: Replicas,
    readers: Sequence[Member],
    partitions: Iterable[int],
    previous: Mapping[int, str],
) -> dict[int, str]:
    """Return partition → member id. Only members of planned replicas get partitions, if there are any."""
    by_name = replicas.by_name(readers)
    planned = {name: by_name[name] for name in plan.replicas if name in by_name} if plan else {}
    able = [member.id for of_replica in planned.values() for member in of_replica] or [one.id for one in readers]
    if not able:
        return {}
    numbers, wanted = sorted(partitions), dict((plan.assignment if plan else None) or {})
    owners: dict[int, str] = {}
    for name, of_replica in planned.items():
        ids = [member.id for member in of_replica]
        owners |= _in_turn([number for number in numbers if wanted.get(number) == name], ids, previous)
    rest = [number for number in numbers if number not in owners]
    if not owners:
        return _in_turn(rest, able, previous)
    counts = dict.fromkeys(able, 0) | Counter(owners.values())
    for number in rest:
        before = previous.get(number, "")
        owners[number] = before if before in counts else min(able, key=lambda one: (counts[one], one))
        counts[owners[number]] += 1
    return owners


def _in_turn(numbers: Sequence[int], ids: Sequence[str], previous: Mapping[int, str]) -> dict[int, str]:
    """Give each member the same count, or one more. A partition stays where it is if its owner's count allows it."""
    share, larger = divmod(len(numbers), len(ids))
    owners, counts = dict[int, str](), dict.fromkeys(ids, 0)
    for number in numbers:
        before = previous.get(number, "")
        if before in counts and counts[before] < share + (larger > 0):
            larger -= counts[before] == share
            owners[number], counts[before] = before, counts[before] + 1
    for number in numbers:
        if number not in owners:
            least = min(ids, key=lambda one: counts[one])
            owners[number], counts[least] = least, counts[least] + 1
    return owners


def _follow(topic: str, members: Sequence[Member], count: int, leading: Mapping[int, str]) -> dict[int, str]:
    ids = [member.id for member in members if topic in member.subscription.topics]
    wanted = [leading.get(number % max(1, len(leading)), "") for number in range(count if ids else 0)]
    return {number: one if one in ids else ids[number % len(ids)] for number, one in enumerate(wanted)}
