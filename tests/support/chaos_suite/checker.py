"""Check the guarantees after a schedule. This module shares no code with the product.

Every check returns a sentence for each violation. Equal violations have equal sentences.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

AWARE_S: Final = 1.0
"""Maximum time until a removed member learns about it from its heartbeat: half of a session, s."""
KILLERS: Final = ("hung", "killed: still running", "killed by SIGKILL")
"""Prefixes of journal texts about a replica that the autoscaler or an unknown process has killed."""
IN_ORDER: Final = "exit status 0"


@dataclass(frozen=True, slots=True)
class Served:
    """One record of payments.settled; partition and offset are those of the request."""

    order_id: str
    partition: int
    offset: int
    replica: str
    done_s: float
    """Seconds since 1970, without steps of the clock."""
    verdict: tuple[object, ...] = ()
    """Values that must be equal in a repeated record."""
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
    """Members of the Payment group at the begin of a generation, as its coordinator stored them."""

    at_s: float
    generation: int
    names: frozenset[str]
    leader: str = ""
    ids: frozenset[str] = frozenset()
    """Member ids. A replica that was removed from the group returns with another id."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a replica in the autoscaler's journal."""

    at_us: int
    replica: str
    how: str


@dataclass(slots=True)
class Evidence:
    """All records read so far, in the order of the topics. Each record of an order is represented by the order id."""

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
    verdicts = {event.order_id: event.accepted for event in found.settled}
    shipped, notified, refused = set(found.shipped), set(found.notified), set(found.refused)
    violations = []
    for order in accepted:
        if order in refused:
            violations.append(f"order {order} was accepted, and refused later")
        elif order not in verdicts:
            where = "at payments.requested/{}/{}".format(*found.requested[order]) if order in found.requested else ""
            violations.append(f"order {order} {where or 'was never requested, and'} has no payment")
        elif verdicts[order] and order not in shipped:
            violations.append(f"order {order} is paid and not shipped")
        elif order not in notified:
            violations.append(f"order {order} has no message to its customer")
    return violations


def doubled(found: Evidence) -> list[str]:
    """Effects that exist twice. Equal records of a payment do not count, because readers drop them."""
    violations = [f"order {order} was shipped {n} times" for order, n in Counter(found.shipped).items() if n > 1]
    violations += [f"{n} messages about order {order}" for order, n in Counter(found.notified).items() if n > 1]
    verdicts: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for event in found.settled:
        verdicts[event.order_id].add((event.accepted, *event.verdict))
    different = {order: len(each) for order, each in verdicts.items() if len(each) > 1}
    violations += [f"order {order} has {count} different payments" for order, count in different.items()]
    shipped = set(found.shipped)
    declined = dict.fromkeys(event.order_id for event in found.settled if not event.accepted)
    return violations + [f"order {order} was declined and shipped" for order in declined if order in shipped]


def out_of_order(settled: Iterable[Served], disturbed: Collection[str], from_s: float = 0.0) -> list[str]:
    """Events first served after a later event of their partition, at `from_s` or later.

    disturbed: replicas that were killed or stopped. Their last records may be missing, so that their successor seems
    late.
    """
    newest: dict[int, Served] = {}
    seen: set[tuple[int, int]] = set()
    violations = []
    for event in sorted(settled, key=lambda event: (event.done_s, event.offset)):
        before = newest.get(event.partition)
        if before is None or event.offset > before.offset:
            newest[event.partition] = event
        elif (event.partition, event.offset) not in seen and event.done_s >= from_s and before.replica not in disturbed:
            where = f"{event.partition}/{event.offset} at {event.replica}"
            violations.append(f"{where} was served first after {before.partition}/{before.offset} at {before.replica}")
        seen.add((event.partition, event.offset))
    return violations


def regressed(commits: Iterable[Commit], outages: Sequence[tuple[float, float]] = ()) -> list[str]:
    """Committed offsets that are lower than an earlier one.

    outages: spans in which a commit may be stored after its sender was lost. The next owner may then begin before it.
    """
    highest: dict[tuple[str, str, int], Commit] = {}
    violations = []
    for commit in commits:
        place = (commit.group, commit.topic, commit.partition)
        before = highest.get(place, commit)
        if commit.offset >= before.offset:
            highest[place] = commit
        elif not any(began <= before.at_s <= ended for began, ended in outages):
            where = f"{commit.topic}/{commit.partition}"
            violations.append(f"{commit.group} committed {commit.offset} of {where} after {before.offset}")
    return violations


def losses(members: Sequence[Members], before_s: float) -> list[tuple[float, float]]:
    """Return the times at which members were lost: at most `before_s` before the generation without them began."""
    pairs = pairwise(members)
    return [(after.at_s - before_s, after.at_s) for before, after in pairs if before.ids - after.ids]


def zombies(settled: Iterable[Served], members: Sequence[Members]) -> list[str]:
    """Events that a replica began after the group had removed it. It may only finish an event begun before."""
    by_replica: dict[str, list[Served]] = defaultdict(list)
    for event in sorted(settled, key=lambda event: event.done_s):
        by_replica[event.replica].append(event)
    return [
        f"{replica} served {begun.partition}/{begun.offset} {begun.done_s - left_s:.1f} s after the group dropped it"
        for replica, served in by_replica.items()
        for left_s, back_s in _absences(replica, members)
        for begun in [event for event in served if left_s + AWARE_S < event.done_s < back_s][1:]
    ]


def _absences(replica: str, members: Sequence[Members]) -> list[tuple[float, float]]:
    """Return the spans in which a former member of the group was not in the group."""
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
    """Replicas that were killed although the schedule did not disturb them."""
    return [
        f"{end.replica} was killed, and was healthy ({end.how})"
        for end in ends
        if end.how.startswith(KILLERS) and end.replica not in disturbed
    ]


def ended_by_itself(ends: Iterable[Ended]) -> list[str]:
    """Replicas that failed while no broker was disturbed."""
    failures = [end for end in ends if end.how.startswith("exit status") and not end.how.startswith(IN_ORDER)]
    return [f"{end.replica} failed at {end.at_us}: {end.how}" for end in failures]
