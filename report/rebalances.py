"""Find takeovers of partitions, and the rebalances that they form.

Both are computed from the events. The journal adds the plans and the deaths of replicas.
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
from report.table import NONE, Groups, Ints, Rows, Table, coalesce, find_rows, group_begins, previous, running_max
from report.terms import UNKNOWN_PARTITION, Terms

MAX_REBALANCES: Final = 5_000
"""Maximum number of rebalances in a result. If there are more, it contains the newest."""
MAX_TAKEOVERS: Final = 100_000
"""Maximum number of takeovers that are grouped into rebalances. Older takeovers are ignored."""
MAX_REBALANCE_GAP_US: Final = 5_000_000
"""Two takeovers without a plan belong to different rebalances if the time between them is longer."""
MIN_TRANSITS_OF_WAIT: Final = 3
"""An event waited for its partition's owner if its transit took longer than this multiple of the median."""
MAX_DEATH_RECORD_DELAY_US: Final = 15_000_000
"""Longest time from a takeover until the journal records the death that caused it."""
CLEAN_EXITS: Final = frozenset({ReplicaChange.DRAINED, ReplicaChange.LEFT})


@dataclass(frozen=True, slots=True)
class Takeover:
    """A change of the replica that serves a partition. Times are µs since 1970."""

    partition: int
    old: str
    new: str
    left_us: int
    """Time at which the old owner completed its last event."""
    came_us: int
    """Time at which the new owner received its first event."""
    epoch: int | None = None
    """Epoch in which the new owner served its first event."""
    stay: int = -1
    """Number of the new owner's stay."""
    late: int = 0
    """Late events of the new owner's stay."""
    sent_us: int = sys.maxsize
    """Time at which the new owner's first event was written to the topic; sys.maxsize: unknown."""


class Deaths:
    """The deaths of replicas in the journal. They distinguish takeovers after a death from handovers."""

    def __init__(self, journal: Journal) -> None:
        self.times = _times(journal.changes, {ReplicaChange.DIED})
        """Replica → times of its deaths, µs, sorted."""
        self._gone, self._plans = _times(journal.changes, CLEAN_EXITS), journal.plans

    def caused_by_death(self, takeover: Takeover) -> bool:
        """Return whether the old owner was dead or evicted when the partition moved.

        Dead: the journal has the death between the last event of the old owner and the first event of the new owner.
        Evicted: neither of the two newest plans gives the new owner the partition, so the group moved it, and the old
        owner had not left or drained. If such a plan has no assignment, the old owner counts as dead if the journal
        records its death soon after the takeover.
        """
        left_us, came_us = takeover.left_us, takeover.came_us
        died = self.times.get(takeover.old, ())
        if any(left_us <= at_us <= came_us for at_us in died):
            return True
        newest = self._newest_owners(takeover.partition, came_us)
        if not newest or None in newest:
            return any(left_us <= at_us <= came_us + MAX_DEATH_RECORD_DELAY_US for at_us in died)
        return takeover.new not in newest and not any(at_us <= came_us for at_us in self._gone.get(takeover.old, ()))

    def _newest_owners(self, partition: int, at_us: int) -> list[str | None]:
        """Return the partition's owner in the two newest plans that mention it; None: a plan without assignment."""
        known = self._plans[: bisect_right(self._plans, at_us, key=lambda plan: plan.at_us)]
        named = (plan.assignment for plan in reversed(known))
        owners = (None if names is None else names[partition] for names in named if names is None or partition in names)
        return [owner for owner, _ in zip(owners, range(2), strict=False)]


def _times(changes: Sequence[ReplicaChanged], kinds: Iterable[ReplicaChange]) -> dict[str, list[int]]:
    found = defaultdict[str, list[int]](list)
    for change in changes:
        if change.change in kinds:
            found[change.replica].append(change.at_us)
    return found


def stays(served: Table, deaths: Mapping[str, Sequence[int]]) -> Table:
    """Return the rows of `served`, sorted by partition and time, with the number of their stay in the column `stay`.

    A stay lasts while one process serves a partition and no other process does. The rows also get the columns old
    (previous replica), left_us (last completion at that replica) and came_us (first receipt in this stay). These are
    unknown for the first stay of a partition, and after a time in which two replicas served it (no handover).
    deaths: replica → times of its deaths, µs. A stay is missed if the partition moves twice within a second.
    """
    order = ("partition", "first_done_us", "last_done_us", "replica", "epoch")
    rows = served.where(np.lexsort([served[name] for name in reversed(order)]))
    stay = np.cumsum(group_begins(rows["partition"], rows["replica"], _life(rows, deaths))) - 1
    each = Groups(stay)
    partition, owner, begin_us = (each.first(rows[name]) for name in ("partition", "replica", "first_done_us"))
    first_us = each.min(coalesce(rows["first_received_us"], rows["first_done_us"]))
    new = group_begins(partition)
    left_us = previous(running_max(each.max(rows["last_done_us"]), new), new)
    over = (left_us != NONE) & (left_us <= begin_us)
    old = np.where(over, np.append(-1, owner[:-1]), -1)
    came_us = np.where(over, np.maximum(first_us, left_us), NONE)
    return rows.plus(stay=stay, old=old[stay], left_us=np.where(over, left_us, NONE)[stay], came_us=came_us[stay])


def _life(rows: Table, deaths: Mapping[str, Sequence[int]]) -> Ints:
    life = np.zeros(len(rows["replica"]), np.int64)
    for number, times in zip(rows.numbers(list(deaths)), deaths.values(), strict=True):
        own = (rows["replica"] == number) & (number >= 0)
        life[own] = np.searchsorted(times, rows["first_done_us"][own], side="left")
    return life


def takeovers(stays: Table) -> list[Takeover]:
    """Return the takeovers, by partition and time."""
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
    """Return the rebalances; None without plans, and for share groups, which have no owners. owners: from `stays`."""
    payment = run.section("payment")
    rebalance_protocol = str(payment.get("runtime") or payment.get("rebalance_protocol") or "unknown")
    if not journal.plans or rebalance_protocol == "share":
        return None
    found = group_takeovers(_changes(rows, owners), journal.plans, deaths, terms)
    found.sort(key=lambda rebalance: (rebalance.at_s, rebalance.kind))
    left_out = max(0, len(found) - MAX_REBALANCES)
    return Rebalances(rebalance_protocol=rebalance_protocol, records=tuple(found[left_out:]), records_left_out=left_out)


def _changes(rows: Rows, owners: Table) -> list[Takeover]:
    found = [each for each in takeovers(owners) if each.left_us < each.came_us and each.partition != UNKNOWN_PARTITION]
    found = sorted(found, key=lambda takeover: (-takeover.came_us, takeover.partition))[:MAX_TAKEOVERS]
    if not found:
        return []
    wanted = tuple(np.array([getattr(takeover, name) for takeover in found]) for name in ("partition", "came_us"))
    parts = rows.pieces(partial(_sent, wanted=wanted))
    place, sent_us = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    groups = Groups(place)
    sent = dict(zip(groups.keys[0].tolist(), groups.min(sent_us).tolist(), strict=True))
    complete = (replace(takeover, sent_us=sent.get(row, sys.maxsize)) for row, takeover in enumerate(found))
    return sorted(complete, key=lambda takeover: (takeover.came_us, takeover.partition))


def _sent(events: Table, wanted: tuple[Ints, ...]) -> tuple[Ints, Ints]:
    place = find_rows(wanted, [events["partition"], events["received_us"]])
    sent_us = coalesce(events["accepted_us"], events["placed_us"], events["intended_us"])
    here = (place >= 0) & (sent_us != NONE)
    return place[here], sent_us[here]


def group_takeovers(
    found: Iterable[Takeover], plans: Sequence[PlanWritten], deaths: Deaths, terms: Terms
) -> list[RebalanceRecord]:
    """Group takeovers of the same kind and plan into rebalances. plans: sorted by time, at least one.

    A takeover belongs to the plan of its epoch. If that is unknown, it belongs to the newest plan at its time.
    """
    by_epoch = {plan.epoch: number for number, plan in enumerate(plans)}
    times = [plan.at_us for plan in plans]
    groups: dict[tuple[int, str], list[list[Takeover]]] = {}
    for change in found:
        newest = max(0, bisect_right(times, change.came_us) - 1)
        plan = newest if change.epoch is None else by_epoch.get(change.epoch, newest)
        kind = _kind(change, plans[plan], deaths)
        same = groups.setdefault((plan, kind), [])
        if same and (kind != "membership" or change.came_us - same[-1][-1].came_us <= MAX_REBALANCE_GAP_US):
            same[-1].append(change)
        else:
            same.append([change])
    grouped = [(plans[plan], kind, each) for (plan, kind), together in groups.items() for each in together]
    return [_rebalance(each, plan, kind, terms) for plan, kind, each in grouped]


def _rebalance(takeovers: Sequence[Takeover], plan: PlanWritten, kind: str, terms: Terms) -> RebalanceRecord:
    transit_us = terms.typical.transit_us
    waited = [each for each in takeovers if each.came_us - each.sent_us > MIN_TRANSITS_OF_WAIT * transit_us]
    served_us = max((takeover.came_us for takeover in waited), default=None)
    planned = kind != "membership" and served_us is not None and served_us > plan.at_us
    begin_us = plan.at_us if planned and kind == "plan" else 0  # the old owner served at least until the plan
    paused = [takeover for takeover in waited if takeover.came_us > begin_us]
    pauses = [each.came_us - max(each.left_us, each.sent_us + transit_us, begin_us) for each in paused]
    partitions = len({takeover.partition for takeover in takeovers})
    return RebalanceRecord(
        at_s=(max(takeover.came_us for takeover in takeovers) - terms.started_us) / 1e6,
        kind=kind,
        members=max(1, len(plan.replicas)),
        moved=partitions if kind == "membership" else max(partitions, plan.moved),
        pause_s=max(pauses) / 1e6 if pauses else None,
        plan_to_ready_s=(served_us - plan.at_us) / 1e6 if planned and served_us is not None else None,
    )


def _kind(takeover: Takeover, plan: PlanWritten, deaths: Deaths) -> str:
    if plan.assignment is not None and plan.assignment.get(takeover.partition) != takeover.new:
        return "membership"
    return "death" if deaths.caused_by_death(takeover) else "plan"
