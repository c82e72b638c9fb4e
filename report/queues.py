"""Late events with what the queues say that they stood in, and when the whole group stood still.

A replica serves one event at a time, so the events of a replica form a queue, and so do those of a partition. With
aᵢ the time from which event i could be served and sᵢ what its service takes, it is done at
Dᵢ = Sᵢ + max over j ≤ i of (aⱼ − Sⱼ₋₁), Sᵢ = s₁ + … + sᵢ (Lindley's recursion, unrolled). With other aⱼ or sⱼ it
says when the event would have been done.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np

from report import table as cols
from report.seconds import SERVED
from report.table import NONE, Groups, Ints, Rows, Table
from report.terms import SECOND_US, Terms, done, handed, in_line, placed, ready

SLOW: Final = 3
"""A service that takes longer than this many usual services is slow."""
WINDOW_S: Final = 10
"""Seconds over which a replica's load is averaged: a burst is shorter."""
PLACE: Final = ("done_us", "partition", "offset", "intended_us")
"""No two events differ in none of these."""
HANDS: Final = ("stay", "old", "left_us", "came_us")
"""How the event's partition came to its replica; see `rebalances.stays`."""
KNOWN: Final = (
    *PLACE, *HANDS, "replica", "epoch", "placed_us", "accepted_us", "handed_us", "received_us", "start_us",
    "service_us", "unstalled_us", "unslowed_us", "since_us",
)  # fmt: skip
LEAST_SLOT_US: Final = 20_000
"""Resolution of standstills."""
LONGEST_US: Final = 600_000_000
"""Only the end of a longer wait or service counts for standstills: a time may be absurd."""
AFTER_CHANGE_US: Final = 5_000_000
"""A standstill is the group's if a plan, or a change of a replica, is within it or at most this long before it."""


def waited(rows: Rows, stays: Table, terms: Terms) -> Table:
    """Return the late events that were done, with what the queues of their replicas and of their partitions say.

    stays: of `rebalances.stays`. Added columns, all in µs:
    start_us      start of its service: received, and the replica's event before it done
    service_us    length of its service
    unstalled_us  end of its service if its replica had never been idle while the event could be served
    unslowed_us   … if no service had been slow
    unpaused_us   … if its partition had changed hands in no time
    since_us      time since which its replica had never been without work
    """
    changed = stays.where(stays["left_us"] != NONE).only(*SERVED, *HANDS)
    queued = partial(_queued, stays=changed, terms=terms)
    late = cols.joined(rows.pieces(partial(queued, line="replica"), by="replica"), *KNOWN)
    paused = cols.joined(rows.pieces(partial(queued, line="partition"), by="partition"), *PLACE, "unstalled_us")
    there = cols.places([paused[name] for name in PLACE], [late[name] for name in PLACE])
    return late.plus(unpaused_us=cols.taken(paused["unstalled_us"], there))


def _queued(events: Table, *, stays: Table, terms: Terms, line: str) -> Table:
    """Return the late events of a piece, with what the queues of its replicas (or partitions) say of them.

    line: replica, or partition. Times of a partition are those of one that changes hands in no time.
    """
    rows = placed(done(events))
    rows = rows.plus(replica=stays.numbers_of(rows, "replica"), second=terms.second(rows["done_us"]))
    hands = cols.places([stays[key] for key in SERVED], [rows[key] for key in SERVED])
    taken = {name: cols.taken(stays[name], hands, -1 if name in {"stay", "old"} else NONE) for name in HANDS}
    rows = Table(taken, stays.names, rows.__getitem__)
    rows = rows.where(in_line(rows, rows[line]))
    done_us, handed_us, came_us = rows["done_us"], handed(rows), rows["came_us"]
    moved = (came_us != NONE) & (handed_us < came_us)
    # ready_us: when an event could really be served; here_us: when it could have been
    if line == "replica":
        ready_us, here_us = ready(rows), np.where(moved, came_us, handed_us) + terms.usual.transit_us
    else:
        ready_us = np.where(moved, np.minimum(came_us, done_us), handed_us)
        here_us = np.where(moved, np.maximum(handed_us, rows["left_us"]), handed_us)
    here_us, first = np.minimum(here_us, ready_us), cols.begins(rows[line])
    before_us = np.where(first, here_us, cols.before(done_us, first))
    start_us = np.minimum(np.maximum(ready_us, before_us), done_us)
    service_us = done_us - start_us
    usual_us = terms.usual.service_us
    kept_us = np.where((service_us > SLOW * usual_us) & (usual_us > 0), usual_us, service_us)
    did_us = np.where(start_us > before_us, start_us, here_us)
    work_us, kept_work_us = cols.running_sum(service_us, first), cols.running_sum(kept_us, first)
    return (
        rows.plus(
            handed_us=handed_us,
            start_us=start_us,
            service_us=service_us,
            unstalled_us=work_us + cols.running_max(here_us - work_us + service_us, first),
            unslowed_us=kept_work_us + cols.running_max(did_us - kept_work_us + kept_us, first),
            since_us=cols.running_max(np.where(here_us >= before_us, here_us, NONE), first),
        )
        .where(terms.late(rows))
        .only(*KNOWN)
    )


def owner_loads(arrived: Table, late: Table, terms: Terms) -> dict[str, Ints]:
    """Return load, over_from of `late`: what its replica's partitions got in `WINDOW_S` seconds up to its own.

    load: events in the window, of the partitions whose events of the last second it served. over_from: the second
    since which it has been more than it can serve (NONE: it is not). arrived: of `seconds.owned`.
    """
    each = arrived.where(arrived["owner"] >= 0)
    second, upto = each["second"], np.cumsum(each["events"])
    span = int(np.ptp(second)) + WINDOW_S + 1 if len(second) else 1
    place = each["partition"] * span + second
    window = upto - np.append(0, upto)[np.searchsorted(place, place - WINDOW_S, side="right")]
    groups = Groups(each["owner"], second)
    replica, second = groups.keys
    load = groups.sum(window)
    over = load * terms.usual.service_us > WINDOW_S * SECOND_US
    fresh = cols.begins(replica, second - np.arange(len(second)), over)  # in a row seconds grow as rows do
    since = cols.running_max(np.where(over & fresh, second, NONE), cols.begins(replica))
    found = cols.places(groups.keys, [late["replica"], terms.second(late["intended_us"])])
    return {"load": cols.taken(load, found), "over_from": cols.taken(np.where(over, since, NONE), found)}


def group_stops(rows: Rows, terms: Terms, moments: Sequence[int]) -> list[tuple[int, int]]:
    """Return the standstills, a tenth of the target or longer, that a change of the group explains, in order.

    The group stands still in a slot of time in which no replica finishes or holds an event, and several partitions
    have events that wait. moments: times of plans and of changes of replicas, µs.
    """
    length_us = max(LEAST_SLOT_US, 2 * terms.usual.service_us)
    still = _still_slots(np.concatenate(rows.pieces(partial(_spans, terms=terms, length_us=length_us))))
    every = [one for one in np.split(still, np.flatnonzero(np.diff(still) > 1) + 1) if len(one)]
    stops = [(int(one[0]) * length_us, (int(one[-1]) + 1) * length_us) for one in every]
    return [
        (from_us, until_us)
        for from_us, until_us in stops
        if until_us - from_us >= terms.target_us // 10
        and any(from_us - AFTER_CHANGE_US <= at_us < until_us for at_us in moments)
    ]


def _spans(events: Table, terms: Terms, length_us: int) -> Ints:
    """Return rows of waiting partition (NONE: a replica served), first and last slot.

    A partition waits while one of its events has been handed on and not received; waits below a tenth of the target
    do not count. From then until it is done, an event is being served, or those before it are.
    """
    rows = placed(done(events))
    second = terms.second(rows["done_us"])
    rows = rows.where((second >= 0) & (second <= terms.shown_s))
    handed_us, ready_us, done_us = handed(rows), ready(rows), rows["done_us"]
    waits = ready_us - handed_us >= max(terms.target_us // 10, 2 * length_us)
    waited_from_us = np.maximum(handed_us, ready_us - LONGEST_US)[waits]
    served_from_us = np.maximum(ready_us, done_us - LONGEST_US)
    served = (np.full(len(done_us), NONE), served_from_us // length_us, done_us // length_us)
    waited = (rows["partition"][waits], -(-waited_from_us // length_us), ready_us[waits] // length_us - 1)
    line, first, last = (np.concatenate(pair) for pair in zip(served, waited, strict=True))
    groups = Groups(line, first)  # a burst of thousands is one row
    return np.stack([*groups.keys, groups.max(last)], axis=1)


def _still_slots(spans: Ints) -> Ints:
    """Return the slots (numbers since the epoch) in which at least two partitions waited and no replica served."""
    line, first, last = spans[np.lexsort(spans.T[::-1])].T
    new = cols.begins(line)
    first = np.maximum(first, cols.before(cols.running_max(last, new), new) + 1)  # a slot counts once for each line
    if not (valid := first <= last).any():
        return spans[:0, 0]
    begin, slots = first[valid].min(), int(last.max() - first[valid].min()) + 2
    served, waiting = (
        np.cumsum(np.bincount(first[some] - begin, None, slots) - np.bincount(last[some] + 1 - begin, None, slots))
        for some in (valid & (line == NONE), valid & (line != NONE))
    )
    return np.asarray(np.flatnonzero((served == 0) & (waiting >= 2)) + begin)


def overlap(intervals: Iterable[tuple[int, int]], from_us: Ints, until_us: Ints) -> Ints:
    """Return how long each [from, until] overlaps with `intervals`, µs; 0 where it is not known."""
    total_us = np.zeros(len(from_us), np.int64)
    for begin_us, end_us in intervals:
        total_us += np.maximum(np.minimum(until_us, end_us) - np.maximum(from_us, begin_us), 0)
    return np.where((from_us != NONE) & (until_us != NONE), total_us, 0)
