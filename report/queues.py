"""Compute when late events would have been completed under other conditions, and when the group served nothing.

A replica serves one event at a time, so its events form a queue. The events of a partition form a queue too. Let aᵢ
be the time from which event i could be served, and sᵢ its service time. Then event i is completed at
Dᵢ = Sᵢ + max over j ≤ i of (aⱼ − Sⱼ₋₁), with Sᵢ = s₁ + … + sᵢ. This is Lindley's recursion in closed form. The
completion time under other conditions is computed with other aⱼ or sⱼ.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np

from report import table as cols
from report.seconds import SERVICE_KEY
from report.table import NONE, Groups, Ints, Rows, Table
from report.terms import SECOND_US, Terms, completed, handed_on_us, received_us, service_order, with_partition

SLOW_FACTOR: Final = 3
"""A service is slow if it takes longer than this multiple of the median service."""
LOAD_WINDOW_S: Final = 10
"""Seconds over which the load of a replica is averaged. They are longer than a burst."""
EVENT_KEY: Final = ("done_us", "partition", "offset", "intended_us")
"""Columns that identify an event."""
HANDOVER_COLUMNS: Final = ("stay", "old", "left_us", "came_us")
"""Columns about the change of owner by which the replica got the partition; see `rebalances.stays`."""
LATE_COLUMNS: Final = (
    *EVENT_KEY, *HANDOVER_COLUMNS, "replica", "epoch", "placed_us", "accepted_us", "handed_us", "received_us",
    "start_us", "service_us", "unstalled_us", "unslowed_us", "since_us",
)  # fmt: skip
MIN_SLOT_US: Final = 20_000
"""Minimum length of the time slots in which standstills are found."""
MAX_SPAN_US: Final = 600_000_000
"""Longest wait or service that counts, back from its end, because the time of its beginning may be wrong."""
MAX_DELAY_AFTER_CHANGE_US: Final = 5_000_000
"""A standstill counts only if a plan or a change of a replica is in it, or at most this long before it."""


def late_events(rows: Rows, stays: Table, terms: Terms) -> Table:
    """Return the completed late events, with completion times under other conditions. stays: from `rebalances.stays`.

    Added columns, µs: `start_us` and `service_us` are start and length of the event's service. Its replica was never
    idle from `since_us` until `start_us`. Three columns are completion times under other conditions: `unstalled_us` if
    the replica had never been idle while the event waited, `unslowed_us` if no service had been slow, and `unpaused_us`
    if the change of owner of its partition had taken no time.
    """
    changed = stays.where(stays["left_us"] != NONE).only(*SERVICE_KEY, *HANDOVER_COLUMNS)
    queued = partial(_queued, stays=changed, terms=terms)
    late = cols.concat(rows.pieces(partial(queued, line="replica"), by="replica"), *LATE_COLUMNS)
    paused = cols.concat(rows.pieces(partial(queued, line="partition"), by="partition"), *EVENT_KEY, "unstalled_us")
    there = cols.find_rows([paused[name] for name in EVENT_KEY], [late[name] for name in EVENT_KEY])
    return late.plus(unpaused_us=cols.take(paused["unstalled_us"], there))


def _queued(events: Table, *, stays: Table, terms: Terms, line: str) -> Table:
    """Return the late events of a piece, with times from the queues of each `line` ("replica" or "partition").

    For the queue of a partition, changes of its owner take no time.
    """
    rows = with_partition(completed(events))
    rows = rows.plus(replica=stays.numbers_of(rows, "replica"), second=terms.second(rows["done_us"]))
    hands = cols.find_rows([stays[key] for key in SERVICE_KEY], [rows[key] for key in SERVICE_KEY])
    joined = {name: cols.take(stays[name], hands, -1 if name in {"stay", "old"} else NONE) for name in HANDOVER_COLUMNS}
    rows = Table(joined, stays.names, rows.__getitem__)
    rows = rows.where(service_order(rows, rows[line]))
    done_us, handed_us, came_us = rows["done_us"], handed_on_us(rows), rows["came_us"]
    moved = (came_us != NONE) & (handed_us < came_us)
    # ready_us: when an event could be served; here_us: when it could have been without a pause
    if line == "replica":
        ready_us, here_us = received_us(rows), np.where(moved, came_us, handed_us) + terms.typical.transit_us
    else:
        ready_us = np.where(moved, np.minimum(came_us, done_us), handed_us)
        here_us = np.where(moved, np.maximum(handed_us, rows["left_us"]), handed_us)
    here_us, first = np.minimum(here_us, ready_us), cols.group_begins(rows[line])
    before_us = np.where(first, here_us, cols.previous(done_us, first))
    start_us = np.minimum(np.maximum(ready_us, before_us), done_us)
    service_us = done_us - start_us
    usual_us = terms.typical.service_us
    capped_us = np.where((service_us > SLOW_FACTOR * usual_us) & (usual_us > 0), usual_us, service_us)
    did_us = np.where(start_us > before_us, start_us, here_us)
    work_us, capped_work_us = cols.running_sum(service_us, first), cols.running_sum(capped_us, first)
    return (
        rows.plus(
            handed_us=handed_us,
            start_us=start_us,
            service_us=service_us,
            unstalled_us=work_us + cols.running_max(here_us - work_us + service_us, first),
            unslowed_us=capped_work_us + cols.running_max(did_us - capped_work_us + capped_us, first),
            since_us=cols.running_max(np.where(here_us >= before_us, here_us, NONE), first),
        )
        .where(terms.late(rows))
        .only(*LATE_COLUMNS)
    )


def owner_loads(arrived: Table, late: Table, terms: Terms) -> dict[str, Ints]:
    """Return the columns load and over_from for `late`.

    load: events of the replica's partitions in the `LOAD_WINDOW_S` seconds up to the second of the event. over_from:
    second since which the load exceeds the capacity (NONE: it does not). arrived: from `seconds.owned_arrivals`.
    """
    each = arrived.where(arrived["owner"] >= 0)
    second, upto = each["second"], np.cumsum(each["events"])
    span = int(np.ptp(second)) + LOAD_WINDOW_S + 1 if len(second) else 1
    place = each["partition"] * span + second
    window = upto - np.append(0, upto)[np.searchsorted(place, place - LOAD_WINDOW_S, side="right")]
    groups = Groups(each["owner"], second)
    replica, second = groups.keys
    load = groups.sum(window)
    over = load * terms.typical.service_us > LOAD_WINDOW_S * SECOND_US
    fresh = cols.group_begins(replica, second - np.arange(len(second)), over)  # consecutive seconds: constant
    since = cols.running_max(np.where(over & fresh, second, NONE), cols.group_begins(replica))
    found = cols.find_rows(groups.keys, [late["replica"], terms.second(late["intended_us"])])
    return {"load": cols.take(load, found), "over_from": cols.take(np.where(over, since, NONE), found)}


def group_stops(rows: Rows, terms: Terms, moments: Sequence[int]) -> list[tuple[int, int]]:
    """Return begin and end (µs) of each standstill that follows a change of the group.

    The group stands still while no replica serves an event and events of at least two partitions wait. Standstills
    shorter than a tenth of the target do not count.
    moments: times of plans and of changes of replicas, µs.
    """
    length_us = max(MIN_SLOT_US, 2 * terms.typical.service_us)
    still = _still_slots(np.concatenate(rows.pieces(partial(_spans, terms=terms, length_us=length_us))))
    runs = [slots for slots in np.split(still, np.flatnonzero(np.diff(still) > 1) + 1) if len(slots)]
    stops = [(int(slots[0]) * length_us, (int(slots[-1]) + 1) * length_us) for slots in runs]
    return [
        (from_us, until_us)
        for from_us, until_us in stops
        if until_us - from_us >= terms.target_us // 10
        and any(from_us - MAX_DELAY_AFTER_CHANGE_US <= at_us < until_us for at_us in moments)
    ]


def _spans(events: Table, terms: Terms, length_us: int) -> Ints:
    """Return rows (partition, first slot, last slot). The partition waited in these slots; NONE: a replica served.

    A partition waits while one of its events is in the topic and not received, if that takes at least a tenth of the
    target. A replica serves from the receipt of an event until its completion.
    """
    rows = with_partition(completed(events))
    second = terms.second(rows["done_us"])
    rows = rows.where((second >= 0) & (second <= terms.shown_s))
    handed_us, ready_us, done_us = handed_on_us(rows), received_us(rows), rows["done_us"]
    waits = ready_us - handed_us >= max(terms.target_us // 10, 2 * length_us)
    waited_from_us = np.maximum(handed_us, ready_us - MAX_SPAN_US)[waits]
    served_from_us = np.maximum(ready_us, done_us - MAX_SPAN_US)
    served = (np.full(len(done_us), NONE), served_from_us // length_us, done_us // length_us)
    waited = (rows["partition"][waits], -(-waited_from_us // length_us), ready_us[waits] // length_us - 1)
    line, first, last = (np.concatenate(pair) for pair in zip(served, waited, strict=True))
    groups = Groups(line, first)  # thousands of events of a burst become one row
    return np.stack([*groups.keys, groups.max(last)], axis=1)


def _still_slots(spans: Ints) -> Ints:
    """Return the slots (numbered from 1970) in which at least two partitions waited and no replica served."""
    line, first, last = spans[np.lexsort(spans.T[::-1])].T
    new = cols.group_begins(line)
    first = np.maximum(first, cols.previous(cols.running_max(last, new), new) + 1)  # count each slot once per line
    if not (valid := first <= last).any():
        return spans[:0, 0]
    begin, slots = first[valid].min(), int(last.max() - first[valid].min()) + 2
    served, waiting = (
        np.cumsum(np.bincount(first[some] - begin, None, slots) - np.bincount(last[some] + 1 - begin, None, slots))
        for some in (valid & (line == NONE), valid & (line != NONE))
    )
    return np.asarray(np.flatnonzero((served == 0) & (waiting >= 2)) + begin)


def overlap(intervals: Iterable[tuple[int, int]], from_us: Ints, until_us: Ints) -> Ints:
    """Return for each [from_us, until_us] how long it overlaps with `intervals`, µs; 0 if one end is unknown."""
    total_us = np.zeros(len(from_us), np.int64)
    for begin_us, end_us in intervals:
        total_us += np.maximum(np.minimum(until_us, end_us) - np.maximum(from_us, begin_us), 0)
    return np.where((from_us != NONE) & (until_us != NONE), total_us, 0)
