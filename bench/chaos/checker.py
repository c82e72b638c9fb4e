"""What must hold after a schedule, checked on plain evidence. Shares no code with what it checks.

Every check returns one sentence for each violation; the same violation is always the same sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

AWARE_S: Final = 1.0
"""A member that the group has dropped without its fault learns so by its next heartbeat: half of a session at most."""
KILLERS: Final = ("hung", "killed: still there", "killed by SIGKILL")
"""How the autoscaler's journal begins to tell of a replica that was killed, by itself or by nobody we know of."""
IN_ORDER: Final = "exit status 0"


@dataclass(frozen=True, slots=True)
class Served:
    """One record of payments.settled."""

    order_id: str
    partition: int
    """Partition and offset of the request."""
    offset: int
    replica: str
    done_s: float
    """When it was served, seconds since the epoch, steps of the clock taken out."""
    verdict: tuple[object, ...] = ()
    """Everything about it that a repeat must say again."""
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class Commit:
    """One offset committed by a group."""

    group: str
    topic: str
    partition: int
    offset: int
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Members:
    """The Payment group at the begin of a generation, as its coordinator wrote it down."""

    at_s: float
    generation: int
    names: frozenset[str]
    leader: str = ""
    ids: frozenset[str] = frozenset()
    """The group's own ids of the members; a replica that was dropped comes back under another one."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a replica, as the autoscaler's journal tells it."""

    at_us: int
    replica: str
    how: str


@dataclass(slots=True)
class Evidence:
    """What was read so far, in the order of the logs."""

    requested: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Order id → partition and offset in payments.requested, of the newest record."""
    settled: list[Served] = field(default_factory=list)
    shipped: list[str] = field(default_factory=list)
    """Order ids, one for each record."""
    notified: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Order ids of dead letters."""
    commits: list[Commit] = field(default_factory=list)
    members: list[Members] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)


def lost(accepted: Collection[str], found: Evidence) -> list[str]:
    """An accepted order without one of its effects."""
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
            said.append(f"nobody was told of order {order}")
    return said


def doubled(found: Evidence) -> list[str]:
    """An effect that is there twice; a payment only where two records of it differ, for repeats of it are dropped."""
    said = [f"order {order} was shipped {n} times" for order, n in Counter(found.shipped).items() if n > 1]
    said += [f"{n} messages about order {order}" for order, n in Counter(found.notified).items() if n > 1]
    verdicts: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for one in found.settled:
        verdicts[one.order_id].add((one.accepted, *one.verdict))
    said += [f"order {order} has {len(each)} different payments" for order, each in verdicts.items() if len(each) > 1]
    shipped = set(found.shipped)
    declined = [one.order_id for one in found.settled if not one.accepted]
    return said + [f"order {order} was declined and shipped" for order in dict.fromkeys(declined) if order in shipped]


def out_of_order(settled: Iterable[Served], disturbed: Collection[str], from_s: float = 0.0) -> list[str]:
    """An event that was served from `from_s` on, for the first time, after a later one of its partition.

    disturbed: replicas that were killed or stopped. What such a one did last may be told in part, because some of its
    output was on its way; then its successor seems late, and is not.
    """
    newest: dict[int, Served] = {}
    seen: set[tuple[int, int]] = set()
    said = []
    for one in sorted(settled, key=lambda one: (one.done_s, one.offset)):
        before = newest.get(one.partition)
        if before is None or one.offset > before.offset:
            newest[one.partition] = one
        elif (one.partition, one.offset) in seen or one.done_s < from_s:
            pass
        elif before.replica not in disturbed:
            where = f"{one.partition}/{one.offset} at {one.replica}"
            said.append(f"{where} was served first after {before.partition}/{before.offset} at {before.replica}")
        seen.add((one.partition, one.offset))
    return said


def regressed(commits: Iterable[Commit], outages: Sequence[tuple[float, float]] = ()) -> list[str]:
    """A committed offset that went back.

    outages: from when to when a commit may have gone unanswered: it was written down, and before all copies had it its
    sender was lost. Nobody had been shown it, so whoever came next began before it, and events repeat.
    """
    highest: dict[tuple[str, str, int], Commit] = {}
    said = []
    for one in commits:
        place = (one.group, one.topic, one.partition)
        before = highest.get(place, one)
        if one.offset < before.offset and not any(began <= before.at_s <= ended for began, ended in outages):
            said.append(f"{one.group} committed {one.offset} of {one.topic}/{one.partition} after {before.offset}")
        if one.offset >= before.offset:
            highest[place] = one
    return said


def losses(members: Sequence[Members], before_s: float) -> list[tuple[float, float]]:
    """Return the times in which a member was lost, which is `before_s` at most before the group began without it."""
    pairs = pairwise(members)
    return [(after.at_s - before_s, after.at_s) for before, after in pairs if before.ids - after.ids]


def zombies(settled: Iterable[Served], members: Sequence[Members]) -> list[str]:
    """Events that a replica began although the group had dropped it.

    Between two memberships it may only end the one event that it had begun before.
    """
    by_replica: dict[str, list[Served]] = defaultdict(list)
    for one in settled:
        by_replica[one.replica].append(one)
    said = []
    for replica, served in by_replica.items():
        for left_s, back_s in _absences(replica, members):
            late = sorted((one for one in served if left_s + AWARE_S < one.done_s < back_s), key=lambda one: one.done_s)
            said += [
                f"{replica} served {one.partition}/{one.offset} {one.done_s - left_s:.1f} s after the group dropped it"
                for one in late[1:]
            ]
    return said


def _absences(replica: str, members: Sequence[Members]) -> list[tuple[float, float]]:
    """Return from when to when it had been in the group and was no longer."""
    found: list[tuple[float, float]] = []
    left_s: float | None = None
    was_in = False
    for one in members:
        is_in = replica in one.names
        if was_in and not is_in:
            left_s = one.at_s
        elif is_in and left_s is not None:
            found.append((left_s, one.at_s))
            left_s = None
        was_in = is_in
    return found if left_s is None else [*found, (left_s, float("inf"))]


def wrongly_killed(ends: Iterable[Ended], disturbed: Collection[str]) -> list[str]:
    """A replica that was killed although nothing had been done to it."""
    return [
        f"{one.replica} was killed, and was well ({one.how})"
        for one in ends
        if one.how.startswith(KILLERS) and one.replica not in disturbed
    ]


def ended_by_itself(ends: Iterable[Ended]) -> list[str]:
    """A replica that failed although every broker was well."""
    failures = [one for one in ends if one.how.startswith("exit status") and not one.how.startswith(IN_ORDER)]
    return [f"{one.replica} failed at {one.at_us}: {one.how}" for one in failures]
