"""Check the guarantees after a schedule on plain evidence. This module shares no code with the product.

Every check returns one sentence for each violation; the same violation is always the same sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

AWARE_S: Final = 1.0
"""Time in which a dropped member learns of it: by its next heartbeat, half of a session later at most."""
KILLERS: Final = ("hung", "killed: still running", "killed by SIGKILL")
"""How the journal's text begins for a replica that the autoscaler, or an unknown process, killed."""
IN_ORDER: Final = "exit status 0"


@dataclass(frozen=True, slots=True)
class Served:
    """One record of payments.settled; partition and offset are those of the request."""

    order_id: str
    partition: int
    offset: int
    replica: str
    done_s: float
    """Seconds since the epoch, without steps of the clock."""
    verdict: tuple[object, ...] = ()
    """Everything that must be equal in a repeated record."""
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class Commit:
    group: str
    topic: str
    partition: int
    offset: int
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Members:
    """The Payment group at the begin of a generation, as its coordinator stored it."""

    at_s: float
    generation: int
    names: frozenset[str]
    leader: str = ""
    ids: frozenset[str] = frozenset()
    """The group's ids of the members; a replica that was dropped returns under another one."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a replica in the autoscaler's journal."""

    at_us: int
    replica: str
    how: str


@dataclass(slots=True)
class Evidence:
    """Everything read so far, in the order of the logs. Orders are listed by id, one for each record."""

    requested: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Order id → partition and offset in payments.requested, of the newest record."""
    settled: list[Served] = field(default_factory=list)
    shipped: list[str] = field(default_factory=list)
    notified: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Dead letters."""
    commits: list[Commit] = field(default_factory=list)
    members: list[Members] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)


def lost(accepted: Collection[str], found: Evidence) -> list[str]:
    """Accepted orders without one of their effects."""
    verdicts = {one.order_id: one.accepted for one in found.settled}
    shipped, notified, refused = set(found.shipped), set(found.notified), set(found.refused)
    said = []
    for order in accepted:
        if order in refused:
            said.append(f"order {order} was accepted, and refused later")
        elif order not in verdicts:
            where = "at payments.requested/{}/{}".format(*found.requested[order]) if order in found.requested else ""
            said.append(f"order {order} {where or 'was never requested, and'} has no payment")
        elif verdicts[order] and order not in shipped:
            said.append(f"order {order} is paid and not shipped")
        elif order not in notified:
            said.append(f"order {order} has no message to its customer")
    return said


def doubled(found: Evidence) -> list[str]:
    """Effects that exist twice; payments only if two records of one differ, since readers drop equal ones."""
    said = [f"order {order} was shipped {n} times" for order, n in Counter(found.shipped).items() if n > 1]
    said += [f"{n} messages about order {order}" for order, n in Counter(found.notified).items() if n > 1]
    verdicts: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for one in found.settled:
        verdicts[one.order_id].add((one.accepted, *one.verdict))
    said += [f"order {order} has {len(each)} different payments" for order, each in verdicts.items() if len(each) > 1]
    shipped = set(found.shipped)
    declined = dict.fromkeys(one.order_id for one in found.settled if not one.accepted)
    return said + [f"order {order} was declined and shipped" for order in declined if order in shipped]


def out_of_order(settled: Iterable[Served], disturbed: Collection[str], from_s: float = 0.0) -> list[str]:
    """Events served from `from_s` on, for the first time, after a later one of their partition.

    disturbed: replicas that were killed or stopped. Some of their last records may be missing; then their successor
    only seems late.
    """
    newest: dict[int, Served] = {}
    seen: set[tuple[int, int]] = set()
    said = []
    for one in sorted(settled, key=lambda one: (one.done_s, one.offset)):
        before = newest.get(one.partition)
        if before is None or one.offset > before.offset:
            newest[one.partition] = one
        elif (one.partition, one.offset) not in seen and one.done_s >= from_s and before.replica not in disturbed:
            where = f"{one.partition}/{one.offset} at {one.replica}"
            said.append(f"{where} was served first after {before.partition}/{before.offset} at {before.replica}")
        seen.add((one.partition, one.offset))
    return said


def regressed(commits: Iterable[Commit], outages: Sequence[tuple[float, float]] = ()) -> list[str]:
    """Committed offsets that went back.

    outages: from when to when a commit may be stored without an answer, because its sender was lost first. The next
    owner then begins before it, and events repeat.
    """
    highest: dict[tuple[str, str, int], Commit] = {}
    said = []
    for one in commits:
        place = (one.group, one.topic, one.partition)
        before = highest.get(place, one)
        if one.offset >= before.offset:
            highest[place] = one
        elif not any(began <= before.at_s <= ended for began, ended in outages):
            said.append(f"{one.group} committed {one.offset} of {one.topic}/{one.partition} after {before.offset}")
    return said


def losses(members: Sequence[Members], before_s: float) -> list[tuple[float, float]]:
    """Return when a member was lost: at most `before_s` before the generation without it began."""
    pairs = pairwise(members)
    return [(after.at_s - before_s, after.at_s) for before, after in pairs if before.ids - after.ids]


def zombies(settled: Iterable[Served], members: Sequence[Members]) -> list[str]:
    """Events that a replica began after the group had dropped it; it may only end the one that it had begun."""
    by_replica: dict[str, list[Served]] = defaultdict(list)
    for one in sorted(settled, key=lambda one: one.done_s):
        by_replica[one.replica].append(one)
    return [
        f"{replica} served {one.partition}/{one.offset} {one.done_s - left_s:.1f} s after the group dropped it"
        for replica, served in by_replica.items()
        for left_s, back_s in _absences(replica, members)
        for one in [one for one in served if left_s + AWARE_S < one.done_s < back_s][1:]
    ]


def _absences(replica: str, members: Sequence[Members]) -> list[tuple[float, float]]:
    """Return from when to when the replica had been in the group and was not any more."""
    found: list[tuple[float, float]] = []
    left_s: float | None = None
    for before, after in pairwise(members):
        if replica in before.names and replica not in after.names:
            left_s = after.at_s
        elif replica in after.names and left_s is not None:
            found.append((left_s, after.at_s))
            left_s = None
    return found if left_s is None else [*found, (left_s, float("inf"))]


def wrongly_killed(ends: Iterable[Ended], disturbed: Collection[str]) -> list[str]:
    """Replicas that were killed although the schedule did nothing to them."""
    return [
        f"{one.replica} was killed, and was healthy ({one.how})"
        for one in ends
        if one.how.startswith(KILLERS) and one.replica not in disturbed
    ]


def ended_by_itself(ends: Iterable[Ended]) -> list[str]:
    """Replicas that failed although every broker was undisturbed."""
    failures = [one for one in ends if one.how.startswith("exit status") and not one.how.startswith(IN_ORDER)]
    return [f"{one.replica} failed at {one.at_us}: {one.how}" for one in failures]
