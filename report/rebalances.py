"""Which replica served which partition, and when partitions changed hands: takeovers, and the rebalances they form.

Both are read from the events themselves. The journal adds plans, and which replicas died.
"""

import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged
from report.history import Journal
from report.result import RebalanceRecord, Rebalances
from report.run_info import RunInfo
from report.table import NONE, Groups, Ints, Rows, Table, before, begins, coalesce, places, running_max
from report.terms import NOWHERE, Terms

MOST_ROUNDS: Final = 5_000
"""Newest rebalances that a result lists."""
MOST_TAKEOVERS: Final = 100_000
"""Newest takeovers that rebalances are made from: partitions of a run with more change hands all the time."""
APART_US: Final = 5_000_000
"""Least time between two takeovers without a plan that belong to two rebalances."""
WAITED_TRANSITS: Final = 3
"""An event waited for its partition's owner if it was received after more than this many usual transits."""
NOTICED_WITHIN_US: Final = 15_000_000
"""Longest time from a takeover until a death is in the journal: sessions expire late, hung processes are killed."""
GONE: Final = frozenset({ReplicaChange.DRAINED, ReplicaChange.LEFT})


@dataclass(frozen=True, slots=True)
class Takeover:
    """One partition that another replica served from then on. Times are µs since the epoch."""

    partition: int
    old: str
    new: str
    left_us: int
    """When the old owner had done its last event."""
    came_us: int
    """When the new owner received its first event."""
    epoch: int | None = None
    """Epoch of the plan under which the new owner served its first event."""
    stay: int = -1
    """Number of the new owner's stay."""
    late: int = 0
    """Late events of that stay."""
    sent_us: int = sys.maxsize
    """When the new owner's first event had been handed on to the topic; far in the future: not known."""


class Deaths:
    """The deaths in the journal, and whether the old owner of a partition was dead or handed the partition over."""

    def __init__(self, journal: Journal) -> None:
        self.times = _times(journal.changes, {ReplicaChange.DIED})
        """Replica → when it died, µs, in order."""
        self._gone, self._plans = _times(journal.changes, GONE), journal.plans

    def by_death(self, one: Takeover) -> bool:
        """Return whether the old owner was dead, or evicted, when the partition changed hands.

        Dead: the journal says that it died between its last event there and the successor's first. Evicted: neither of
        the two newest plans names the successor, so the group itself gave the partition away, and the old owner had not
        left in good order. If these plans place nothing, a death that the journal has soon afterwards counts.
        """
        died = self.times.get(one.old, ())
        if any(one.left_us <= at_us <= one.came_us for at_us in died):
            return True
        newest = self._newest_owners(one.partition, one.came_us)
        if not newest or None in newest:
            return any(one.left_us <= at_us <= one.came_us + NOTICED_WITHIN_US for at_us in died)
        return one.new not in newest and not any(at_us <= one.came_us for at_us in self._gone.get(one.old, ()))

    def _newest_owners(self, partition: int, at_us: int) -> list[str | None]:
        """Return the owner by each of the two newest plans that mention the partition; None: the group places it."""
        known = self._plans[: bisect_right(self._plans, at_us, key=lambda plan: plan.at_us)]
        named = (plan.assignment for plan in reversed(known))
        owners = (None if one is None else one[partition] for one in named if one is None or partition in one)
        return [owner for owner, _ in zip(owners, range(2), strict=False)]


def _times(changes: Sequence[ReplicaChanged], kinds: Iterable[ReplicaChange]) -> dict[str, list[int]]:
    found = defaultdict[str, list[int]](list)
    for change in changes:
        if change.change in kinds:
            found[change.replica].append(change.at_us)
    return found


def stays(served: Table, deaths: Mapping[str, Sequence[int]]) -> Table:
    """Return the rows of `served`, by time, with the stay that each belongs to.

    A stay is one replica (one life of it) serving a partition without another in between. Added are `stay` (its
    number), old (replica before), left_us (its last event done), came_us (first event received in this stay); unknown
    for the first stay of a partition, and where two replicas served it at the same time: then nothing was handed over.
    deaths: replica → when it died, µs. Exact, unless a partition leaves and returns in one second under one epoch.
    """
    order = ("partition", "first_done_us", "last_done_us", "replica", "epoch")
    rows = served.where(np.lexsort([served[name] for name in reversed(order)]))
    stay = np.cumsum(begins(rows["partition"], rows["replica"], _life(rows, deaths))) - 1
    each = Groups(stay)
    partition, owner, begin_us = (each.first(rows[name]) for name in ("partition", "replica", "first_done_us"))
    first_us = each.min(coalesce(rows["first_received_us"], rows["first_done_us"]))
    new = begins(partition)
    left_us = before(running_max(each.max(rows["last_done_us"]), new), new)
    over = (left_us != NONE) & (left_us <= begin_us)
    old = np.where(over, np.append(-1, owner[:-1]), -1)
    came_us = np.where(over, np.maximum(first_us, left_us), NONE)
    return rows.plus(stay=stay, old=old[stay], left_us=np.where(over, left_us, NONE)[stay], came_us=came_us[stay])


def _life(rows: Table, deaths: Mapping[str, Sequence[int]]) -> Ints:
    life = np.zeros(len(rows["replica"]), np.int64)
    for number, times in zip(rows.numbers(list(deaths)), deaths.values(), strict=True):
        mine = (rows["replica"] == number) & (number >= 0)
        life[mine] = np.searchsorted(times, rows["first_done_us"][mine], side="left")
    return life


def takeovers(stays: Table) -> list[Takeover]:
    """Return the changes of hands, by partition and time."""
    each = Groups(stays["stay"])
    late = each.sum(stays["late"]).tolist()
    columns = ("partition", "old", "replica", "left_us", "came_us", "epoch", "stay")
    rows = zip(*(each.first(stays[name]).tolist() for name in columns), late, strict=True)
    return [
        Takeover(partition, stays.name(old) or "", stays.name(new) or "", left_us, came_us,
                 None if epoch == NONE else epoch, stay, late)
        for partition, old, new, left_us, came_us, epoch, stay, late in rows
        if left_us != NONE
    ]  # fmt: skip


def rebalances(
    run: RunInfo, rows: Rows, owners: Table, terms: Terms, journal: Journal, *, deaths: Deaths
) -> Rebalances | None:
    """Return every rebalance; None without a journal, and where nothing is handed over (a share group).

    owners: of `stays`.
    """
    payment = run.section("payment")
    rebalance_protocol = str(payment.get("runtime") or payment.get("rebalance_protocol") or "unknown")
    if not journal.plans or rebalance_protocol == "share":
        return None
    found = rounds(_changes(rows, owners), journal.plans, deaths, terms)
    found.sort(key=lambda one: (one.at_s, one.kind))
    left_out = max(0, len(found) - MOST_ROUNDS)
    return Rebalances(rebalance_protocol=rebalance_protocol, rounds=tuple(found[left_out:]), rounds_left_out=left_out)


def _changes(rows: Rows, owners: Table) -> list[Takeover]:
    """Return the takeovers in order of time, with `sent_us`."""
    found = [one for one in takeovers(owners) if one.left_us < one.came_us and one.partition != NOWHERE]
    found = sorted(found, key=lambda one: (-one.came_us, one.partition))[:MOST_TAKEOVERS]
    if not found:
        return []
    wanted = (np.array([one.partition for one in found]), np.array([one.came_us for one in found]))
    parts = rows.pieces(partial(_sent, wanted=wanted))
    place, sent_us = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    groups = Groups(place)
    sent = dict(zip(groups.keys[0].tolist(), groups.min(sent_us).tolist(), strict=True))
    every = (replace(one, sent_us=sent.get(row, sys.maxsize)) for row, one in enumerate(found))
    return sorted(every, key=lambda one: (one.came_us, one.partition))


def _sent(events: Table, wanted: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    place = places(wanted, [events["partition"], events["received_us"]])
    sent_us = coalesce(events["accepted_us"], events["placed_us"], events["intended_us"])
    here = (place >= 0) & (sent_us != NONE)
    return place[here], sent_us[here]


def rounds(
    found: Iterable[Takeover], plans: Sequence[PlanWritten], deaths: Deaths, terms: Terms
) -> list[RebalanceRecord]:
    """Return the takeovers, rebalance by rebalance: those of one kind under one plan. plans: by time, at least one.

    A takeover carries out the plan of its epoch, else the newest when the partition was served again.
    """
    by_epoch = {plan.epoch: number for number, plan in enumerate(plans)}
    times = [plan.at_us for plan in plans]
    groups: dict[tuple[int, str], list[list[Takeover]]] = {}
    for change in found:
        newest = max(0, bisect_right(times, change.came_us) - 1)
        plan = newest if change.epoch is None else by_epoch.get(change.epoch, newest)
        kind = _kind(change, plans[plan], deaths)
        same = groups.setdefault((plan, kind), [])
        if same and (kind != "membership" or change.came_us - same[-1][-1].came_us <= APART_US):
            same[-1].append(change)
        else:
            same.append([change])
    every = [(plans[plan], kind, some) for (plan, kind), together in groups.items() for some in together]
    return [_round(some, plan, kind, terms) for plan, kind, some in every]


def _round(some: Sequence[Takeover], plan: PlanWritten, kind: str, terms: Terms) -> RebalanceRecord:
    transit_us = terms.usual.transit_us
    waited = [one for one in some if one.came_us - one.sent_us > WAITED_TRANSITS * transit_us]
    served_us = max((one.came_us for one in waited), default=None)
    planned = kind != "membership" and served_us is not None and served_us > plan.at_us
    begin_us = plan.at_us if planned and kind == "plan" else 0  # until then the old owner served: others, perhaps
    met = [one for one in waited if one.came_us > begin_us]
    pauses = [one.came_us - max(one.left_us, one.sent_us + transit_us, begin_us) for one in met]
    partitions = len({one.partition for one in some})
    return RebalanceRecord(
        at_s=(max(one.came_us for one in some) - terms.started_us) / 1e6,
        kind=kind,
        members=max(1, len(plan.replicas)),
        moved=partitions if kind == "membership" else max(partitions, plan.moved),
        pause_s=max(pauses) / 1e6 if pauses else None,
        plan_to_ready_s=(served_us - plan.at_us) / 1e6 if planned and served_us is not None else None,
    )


def _kind(one: Takeover, plan: PlanWritten, deaths: Deaths) -> str:
    if plan.assignment is not None and plan.assignment.get(one.partition) != one.new:
        return "membership"
    return "death" if deaths.by_death(one) else "plan"
