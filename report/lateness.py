"""Why events were late: each late event gets one cause, the first whose rule holds, in the order of `Cause`.

The last rule holds always. One rule needs the whole group: it stood still when nobody finished anything although
several partitions had events waiting.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from report import history
from report import table as cols
from report.causes import Cause, CauseOfLateness, LateEpisode, Tail
from report.queues import owner_loads, placed, waited
from report.seconds import Shares, in_seconds
from report.table import NONE, Groups, Ints, Mask, Rows, Table
from report.takeovers import Deaths, deaths, takeovers
from report.terms import SECOND_US, Terms, Usual, accounted, done, handed, ready
from report.why import Telling

LISTED: Final = 1_000
"""Most episodes that a report lists: those with most events."""
APART_US: Final = 2 * SECOND_US
"""Two late events that were intended further apart belong to two episodes."""
FIGURES: Final = (
    "latency_us", "intended_us", "placed_us", "accepted_us", "handed_us", "received_us", "start_us", "service_us",
    "left_us", "came_us", "since_us", "slowed_us", "stop_us", "load", "over_from", "old",
)  # fmt: skip
"""Columns of an episode's worst event that its sentence is made from."""
KEPT: Final = ("partition", "replica", "epoch", "offset", "done_us", "cause", *FIGURES)
MOST_EXPLAINED: Final = 1_000_000
"""Of more late events each so many-th, by order of completion, is explained."""
UPON_ARRIVAL_US: Final = SECOND_US
"""What arrived within the last second, or the target where that is longer, is a burst."""
LEAST_SLOT_US: Final = 20_000
"""Resolution: a slot of time counts as a standstill when it holds no completion and lies in nobody's service."""
AFTER_CHANGE_US: Final = 5_000_000
"""A standstill is the group's when a plan, or a replica's coming or going, lies in it or so shortly before."""
SEVERAL: Final = 2
LONGEST_US: Final = 600_000_000
HANDED_OVER, DEAD = 1, 2
Intervals = Sequence[tuple[int, int]]
"""Disjoint times from … until, µs, in order."""


def explain(
    rows: Rows,
    owners: Table,
    arrived: Table,
    terms: Terms,
    journal: Sequence[JournalEntry],
    *,
    usual: Usual,
    shares: Shares,
    pipeline: bool,
) -> Tail:
    """Return why events were late. owners, arrived: of `takeovers.stays` and `seconds.owned`."""
    if shares.in_sla == shares.events:
        return Tail(late=0, causes=(), episodes=())
    changes, plans = history.only(journal, ReplicaChanged), history.only(journal, PlanWritten)
    starting = history.starting(changes, terms.ended_us)
    late = waited(rows, owners, terms, usual)
    number = shares.events - shares.in_sla
    every = max(1, -(-number // MOST_EXPLAINED))
    late = late.where(np.lexsort([late["offset"], late["partition"], late["done_us"]])[::every])
    moments = [*(change.at_us for change in changes), *(plan.at_us for plan in plans)]
    stops = group_stops(rows, terms, usual, moments) if moments else []
    loads = owner_loads(arrived, usual.service_us)
    load = cols.places([loads["replica"], loads["second"]], [late["replica"], terms.second(late["intended_us"])])
    loaded = {name: cols.taken(loads[name], load) for name in ("load", "over_from")}
    late = late.plus(takeover=_kinds(late, owners, Deaths(changes, plans)), **loaded)
    found = attributed(late, terms, usual, stops, history.union(starting)).only(*KEPT)
    if shares.lost:
        died_us = max((at_us for times in deaths(changes).values() for at_us in times), default=NONE)
        found = cols.joined([found, *rows.pieces(partial(never_done, died_us=died_us, pipeline=pipeline))], *KEPT)
    telling = Telling(terms.started_us, terms.target_us, usual.service_us, pipeline=pipeline, starts=starting)
    largest, left_out = episodes(found, telling)
    return Tail(
        late=number,
        explained=len(found["cause"]) if every > 1 else None,
        causes=_causes(found),
        episodes=largest,
        episodes_left_out=left_out,
        by_second=_by_second(found, terms),
    )


def attributed(late: Table, terms: Terms, usual: Usual, stops: Intervals, starting: Intervals) -> Table:
    """Return `late` with `cause`, `latency_us`, `slowed_us` (cost of slow services) and `stop_us` (standstills it met).

    late: late events with the columns of `queues.waited`, `takeover` (how its partition changed hands), and load,
    over_from of its owner. stops: standstills of the whole group. starting: when some replica was not ready yet.
    """

    def in_time(done_us: Ints) -> Mask:
        return np.asarray((done_us != NONE) & (done_us - late["intended_us"] <= terms.target_us))

    done_us, stop_us = late["done_us"], overlap(stops, late["since_us"], late["start_us"])
    late_by_us = np.maximum(cols.minus(late["placed_us"], late["intended_us"]), 0)
    sending_us = cols.minus(late["accepted_us"], late["placed_us"])
    sending_us = np.where(sending_us == NONE, 0, np.maximum(sending_us - usual.sending_us, 0))
    unpaused, unstalled = in_time(late["unpaused_us"]), in_time(late["unstalled_us"])
    pause_us = cols.minus(late["came_us"], late["left_us"])
    in_stop = (pause_us != NONE) & (overlap(stops, late["left_us"], late["came_us"]) * 2 >= pause_us)
    dead, handover = ((late["takeover"] == kind) & unpaused for kind in (DEAD, HANDED_OVER))
    stopped = (unstalled & (stop_us > 0)) | (unpaused & in_stop)
    recent = late["since_us"] >= late["handed_us"] - max(UPON_ARRIVAL_US, terms.target_us)
    rules = {
        Cause.GENERATOR: in_time(done_us - late_by_us),
        Cause.UPSTREAM: in_time(done_us - sending_us) | (unstalled & ~(dead | stopped | handover)),
        Cause.DOWNSTREAM: in_time(late["unslowed_us"]),
        Cause.REPLICA_DEAD: dead,
        Cause.GROUP_STOPPED: stopped,
        Cause.HANDOVER: handover,
        Cause.REPLICA_STARTING: overlap(starting, late["handed_us"], late["start_us"]) > 0,
        Cause.BURST: recent & (late["over_from"] == NONE),
        Cause.OVERLOADED: np.ones(len(done_us), np.bool_),
    }
    cause = np.argmax(np.stack([rules[cause] for cause in Cause]), axis=0) if len(done_us) else done_us
    latency_us, slowed_us = (cols.minus(done_us, late[begin]) for begin in ("intended_us", "unslowed_us"))
    return late.plus(cause=cause, latency_us=latency_us, slowed_us=slowed_us, stop_us=stop_us)


def never_done(events: Table, *, died_us: int, pipeline: bool) -> Table:
    """Return the events that were never done, with `cause`. died_us: when the last replica died; NONE: none did.

    Upstream when it never reached Payment's topic; replica-dead when a replica died after it had been handed over;
    overloaded otherwise: nobody came to serve it.
    """
    lost = placed(events.where((events["done_us"] == NONE) & accounted(events)))
    reached = (lost["requested_records"] > 0) | (not pipeline)
    died = cols.coalesce(lost["placed_us"], lost["intended_us"]) <= died_us
    dead, overloaded, upstream = map(list(Cause).index, (Cause.REPLICA_DEAD, Cause.OVERLOADED, Cause.UPSTREAM))
    cause = np.where(reached, np.where(died, dead, overloaded), upstream)
    told = dict.fromkeys(FIGURES, np.full(len(cause), NONE)) | {"old": np.full(len(cause), -1), "cause": cause}
    told |= {name: lost[name] for name in ("intended_us", "placed_us", "accepted_us", "received_us")}
    return lost.plus(**told).only(*KEPT)


def episodes(late: Table, telling: Telling) -> tuple[tuple[LateEpisode, ...], int]:
    """Return late events of one cause that follow each other on one partition, by time, and how many are left out."""
    order = np.lexsort([late[name] for name in ("done_us", "offset", "intended_us", "cause", "partition")])
    late = late.where(order)
    apart = np.diff(late["intended_us"], prepend=late["intended_us"][:1]) > APART_US
    number = np.cumsum(cols.begins(late["partition"], late["cause"], late["replica"], late["epoch"]) | apart)
    each = Groups(number)
    ranked = Groups(number, *(late[name] for name in FIGURES))
    worst = ranked.order[np.append(each.starts[1:], len(number)) - 1]
    first = {name: each.first(late[name]) for name in ("partition", "cause", "replica", "epoch", "intended_us")}
    until_us = each.max(late["intended_us"])
    by_size = np.lexsort([first["cause"], first["partition"], first["intended_us"], -each.sizes])
    causes = list(Cause)
    found = []
    for row in by_size[:LISTED].tolist():
        where: dict[str, Any] = {name: int(first[name][row]) for name in ("partition", "epoch")}
        where = {name: None if number < 0 else number for name, number in where.items()}
        where["replica"] = late.name(first["replica"][row])
        figures: dict[str, Any] = {name: int(late[name][worst[row]]) for name in FIGURES}
        figures = {name: None if value == NONE else value for name, value in figures.items()}
        cause, old, latency_us = causes[first["cause"][row]], late["old"][worst[row]], figures["latency_us"]
        found.append(
            LateEpisode(
                cause=cause.value,
                **where,
                from_s=(int(first["intended_us"][row]) - telling.started_us) / 1e6,
                until_s=(int(until_us[row]) - telling.started_us) / 1e6,
                events=int(each.sizes[row]),
                worst_s=None if latency_us is None else latency_us / 1e6,
                why=telling.why(cause, figures | where | {"old": late.name(old)}),
            )
        )
    found.sort(key=lambda one: (one.from_s, -1 if one.partition is None else one.partition, one.cause))
    return tuple(found), max(0, len(each.sizes) - LISTED)


def _kinds(late: Table, owners: Table, rule: Deaths) -> Ints:
    found: dict[tuple[int, int], int] = {}
    for one in takeovers(owners):
        if one.late:
            place = (one.partition, one.came_us)
            found[place] = max(found.get(place, 0), DEAD if rule.by_death(one) else HANDED_OVER)
    table = np.array([(*place, kind) for place, kind in found.items()], np.int64).reshape(-1, 3)
    return cols.taken(table[:, 2], cols.places([table[:, 0], table[:, 1]], [late["partition"], late["came_us"]]), 0)


def _causes(late: Table) -> tuple[CauseOfLateness, ...]:
    each, total = Groups(late["cause"]), len(late["cause"])
    rows = zip(each.keys[0].tolist(), each.sizes.tolist(), each.max(late["latency_us"]).tolist(), strict=True)
    found = [
        CauseOfLateness(cause=list(Cause)[number].value, events=events, share=events / total, worst_s=in_seconds(us))
        for number, events, us in rows
    ]
    return tuple(sorted(found, key=lambda one: (-one.events, one.cause)))


def _by_second(late: Table, terms: Terms) -> dict[str, tuple[int, ...]]:
    second = np.clip(terms.second(late["intended_us"]), 0, terms.shown_s - 1)
    by = [np.bincount(second[late["cause"] == number], minlength=terms.shown_s) for number in range(len(Cause))]
    return {cause.value: tuple(counts.tolist()) for cause, counts in zip(Cause, by, strict=True) if counts.any()}


def overlap(intervals: Intervals, from_us: Ints, until_us: Ints) -> Ints:
    """Return how long each [from, until] overlaps `intervals`, µs; 0 where it is not known or ends before it begins."""
    if not intervals:
        return np.zeros(len(from_us), np.int64)
    first_us, last_us = np.array(intervals, np.int64).T
    covered = np.append(0, np.cumsum(last_us - first_us))

    def upto(at_us: Ints) -> Ints:  # how much of `intervals` lies before each time
        place = np.searchsorted(first_us, at_us, side="right")
        inside = np.minimum(at_us, last_us[place - 1]) - first_us[place - 1]
        return np.where(place > 0, covered[place - 1] + inside, 0)

    known = (from_us != NONE) & (until_us != NONE) & (from_us < until_us)
    return np.where(known, upto(until_us) - upto(from_us), 0)


def group_stops(rows: Rows, terms: Terms, usual: Usual, moments: Sequence[int]) -> Intervals:
    """Return the standstills, a tenth of the target or longer, that a change of the group explains, in order.

    moments: times of plans and of replicas' comings and goings, µs. Who serves for a slot finishes something.
    """
    length_us = max(LEAST_SLOT_US, 2 * usual.service_us)
    parts = rows.pieces(partial(_spans, terms=terms, length_us=length_us))
    slots = still_slots(np.concatenate(parts))
    first = np.append(True, np.diff(slots) > 1)[: len(slots)]  # of slots one after the other
    found = zip(slots[first].tolist(), slots[np.roll(first, -1)].tolist(), strict=True)
    stops = ((begin * length_us, (last + 1) * length_us) for begin, last in found)
    return [
        (from_us, until_us)
        for from_us, until_us in stops
        if until_us - from_us >= terms.target_us // 10
        and any(from_us - AFTER_CHANGE_US <= at_us < until_us for at_us in moments)
    ]


def _spans(events: Table, terms: Terms, length_us: int) -> Ints:
    """Return rows of waiting partition (NONE: somebody served), first and last slot.

    A partition waits while one of its events has been handed on and not received; waits below a tenth of the target
    are not looked at. From then until it is done, an event is being served, or those before it are. Of what lasts
    longer than `LONGEST_US` only the end, and nothing outside of what is shown: a time may be absurd.
    """
    rows = placed(done(events))
    second = terms.second(rows["done_us"])
    rows = rows.where((second >= 0) & (second <= terms.shown_s))
    handed_us, ready_us, done_us = handed(rows), ready(rows), rows["done_us"]
    waits = ready_us - handed_us >= max(terms.target_us // 10, 2 * length_us)
    served_from_us = np.maximum(ready_us, done_us - LONGEST_US)
    served = (np.full(len(done_us), NONE), served_from_us // length_us, done_us // length_us)
    waited_from_us = np.maximum(handed_us, ready_us - LONGEST_US)[waits]
    waited = (rows["partition"][waits], -(-waited_from_us // length_us), ready_us[waits] // length_us - 1)
    who, first, last = (np.concatenate(pair) for pair in zip(served, waited, strict=True))
    groups = Groups(who, first)  # a burst of thousands is one row
    return np.stack([*groups.keys, groups.max(last)], axis=1)


def still_slots(spans: Ints) -> Ints:
    """Return the slots (numbers since the epoch) in which at least two partitions waited and nobody served."""
    who, first, last = spans[spans[:, 2] >= spans[:, 1]].T
    if not len(who):
        return spans[:0, 0]
    order = np.lexsort([last, first, who])
    who, first, last = who[order], first[order], last[order]
    new = cols.begins(who)
    first = np.maximum(first, cols.before(cols.running_max(last, new), new) + 1)  # what overlaps is counted once
    new = first <= last
    begin = int(first[new].min())
    slots = np.zeros((2, int(last.max()) - begin + 2), np.int64)
    kind = (who[new] != NONE) + 0
    np.add.at(slots, (kind, first[new] - begin), 1)
    np.add.at(slots, (kind, last[new] + 1 - begin), -1)
    services, partitions = np.cumsum(slots, axis=1)
    still: Ints = np.flatnonzero((services == 0) & (partitions >= SEVERAL)) + begin
    return still
