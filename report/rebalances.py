"""Rounds of the group, told from the events themselves: which partitions changed hands together, and for how long."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from report import history
from report.result import RebalanceRound, Rebalances
from report.run_info import RunInfo
from report.table import NONE, Groups, Ints, Rows, Table, coalesce, places
from report.takeovers import Deaths, Takeover, takeovers
from report.terms import NOWHERE, Usual

MOST_ROUNDS: Final = 5_000
"""Newest rebalances that a result lists."""
MOST_TAKEOVERS: Final = 100_000
"""The newest; a run with more has no rounds, but partitions that wander."""
APART_US: Final = 5_000_000
"""Partitions that the group gives away without a plan, so long one after the other, were two rounds."""
WAITED: Final = 3
"""An event waited for its partition's owner if it was received after more than so many usual transits."""


def rebalances(
    run: RunInfo, started_us: int, rows: Rows, owners: Table, journal: Sequence[JournalEntry], *, usual: Usual
) -> Rebalances | None:
    """Return every round; None without a journal, and where nothing is handed over (a share group).

    owners: of `takeovers.stays`.
    """
    payment = run.section("payment")
    delivery = str(payment.get("runtime") or payment.get("delivery") or "unknown")
    plans, gone = history.only(journal, PlanWritten), history.only(journal, ReplicaChanged)
    if not plans or delivery == "share":
        return None
    found = rounds(changes(rows, owners), plans, gone, started_us, usual.transit_us)
    found.sort(key=lambda one: (one.at_s, one.kind))
    left_out = max(0, len(found) - MOST_ROUNDS)
    return Rebalances(delivery=delivery, rounds=tuple(found[left_out:]), rounds_left_out=left_out)


def changes(rows: Rows, owners: Table) -> list[Takeover]:
    """Return who took over what, when, in order. owners: of `takeovers.stays`."""
    found = [one for one in takeovers(owners) if one.left_us < one.came_us and one.partition != NOWHERE]
    found = sorted(found, key=lambda one: (-one.came_us, one.partition))[:MOST_TAKEOVERS]
    if not found:
        return []
    wanted = (np.array([one.partition for one in found]), np.array([one.came_us for one in found]))
    parts = rows.pieces(partial(_sent, wanted=wanted))
    place, sent_us = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    groups = Groups(place)
    sent = dict(zip(groups.keys[0].tolist(), groups.min(sent_us).tolist(), strict=True))
    every = (replace(one, sent_us=sent.get(row)) for row, one in enumerate(found))
    return sorted(every, key=lambda one: (one.came_us, one.partition))


def _sent(events: Table, wanted: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    place = places(wanted, [events["partition"], events["received_us"]])
    sent_us = coalesce(events["accepted_us"], events["placed_us"], events["intended_us"])
    here = (place >= 0) & (sent_us != NONE)
    return place[here], sent_us[here]


def rounds(
    found: Iterable[Takeover],
    plans: Sequence[PlanWritten],
    gone: Sequence[ReplicaChanged],
    started_us: int,
    transit_us: int,
) -> list[RebalanceRound]:
    """Return the changes, round by round: those of one kind under one plan. plans: by time, at least one.

    A change carries out the plan of its epoch, else the newest when the partition was served again.
    """
    rule = Deaths(gone, plans)
    by_epoch = {plan.epoch: number for number, plan in enumerate(plans)}
    times = [plan.at_us for plan in plans]
    groups: dict[tuple[int, str], list[list[Takeover]]] = {}
    for change in found:
        newest = max(0, bisect_right(times, change.came_us) - 1)
        plan = newest if change.epoch is None else by_epoch.get(change.epoch, newest)
        kind = _kind(change, plans[plan], rule)
        same = groups.setdefault((plan, kind), [])
        if same and (kind != "membership" or change.came_us - same[-1][-1].came_us <= APART_US):
            same[-1].append(change)
        else:
            same.append([change])
    every = [(plans[plan], kind, some) for (plan, kind), together in groups.items() for some in together]
    return [_round(some, plan, kind, started_us, transit_us) for plan, kind, some in every]


def _round(some: Sequence[Takeover], plan: PlanWritten, kind: str, started_us: int, transit_us: int) -> RebalanceRound:
    waited = [one for one in some if one.sent_us is not None and one.came_us - one.sent_us > WAITED * transit_us]
    served_us = max((one.came_us for one in waited), default=None)
    planned = kind != "membership" and served_us is not None and served_us > plan.at_us
    begin_us = plan.at_us if planned and kind == "plan" else 0  # until then the old owner served: others, perhaps
    met = [one for one in waited if one.came_us > begin_us]
    pauses = [one.came_us - max(one.left_us, (one.sent_us or 0) + transit_us, begin_us) for one in met]
    partitions = len({one.partition for one in some})
    return RebalanceRound(
        at_s=(max(one.came_us for one in some) - started_us) / 1e6,
        kind=kind,
        members=max(1, len(plan.replicas)),
        moved=partitions if kind == "membership" else max(partitions, plan.moved),
        pause_s=max(pauses) / 1e6 if pauses else None,
        plan_to_ready_s=(served_us - plan.at_us) / 1e6 if planned and served_us is not None else None,
    )


def _kind(one: Takeover, plan: PlanWritten, rule: Deaths) -> str:
    if plan.assignment is not None and plan.assignment.get(one.partition) != one.new:
        return "membership"
    return "death" if rule.by_death(one) else "plan"
