"""Aggregate event rows by second of the run, and compute series, heat map and owners from these aggregates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from report import history
from report.history import Journal
from report.result import HeatMap, Series
from report.table import NONE, Groups, Ints, Rows, Table, concat, find_rows, group_begins, running_max, sort_pairs, take
from report.terms import SECOND_US, UNKNOWN_PARTITION, Terms, is_counted, latency, with_partition

PARTS_PER_MILLION: Final = {
    "p50": 500_000, "p90": 900_000, "p95": 950_000, "p99": 990_000, "p999": 999_000, "p9999": 999_900, "max": 1_000_000,
}  # fmt: skip
"""Percentile → parts per million. These are integers, because ⌈q·n⌉ of a float q may be one too high."""
SERIES_RANKS: Final = ("p50", "p99", "max")
MAX_DRAIN_S: Final = 600
"""Longest time after the load that series cover. Without a limit, one wrong time could add a million seconds."""
MAX_HEAT_CELLS: Final = 600
"""Maximum number of time steps of a heat map. More would be narrower than a pixel."""
CELL_KEY: Final = ("partition", "replica", "epoch", "second", "intended_second")
SERVICE_KEY: Final = CELL_KEY[:4]
SUM_COLUMNS: Final = ("events", "refused", "late")
MIN_COLUMNS: Final = ("first_done_us", "first_received_us")
MAX_COLUMNS: Final = ("last_done_us", "max_us", "last_us")


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Numbers of events of the whole run."""

    rows: int
    events: int
    """Events that were not refused."""
    in_sla: int
    lost: int
    refused: int
    last_us: int | None
    """Latest intended or done time, µs since 1970."""
    done: Mapping[int, int]
    """Second → events done in it."""


def cells(rows: Rows, terms: Terms) -> Table:
    """Aggregate the events by partition, replica, epoch, second and intended_second, in one pass over the rows.

    second: second of the completion (NONE: never completed). Further columns: events, refused, late (completed events
    only), first_done_us, last_done_us, first_received_us, max_us (worst latency), last_us (latest scheduled or done).
    """
    pieces = rows.pieces(partial(_cells, terms=terms))
    return _aggregate(concat(pieces, *CELL_KEY, *SUM_COLUMNS, *MIN_COLUMNS, *MAX_COLUMNS), CELL_KEY)


def _cells(events: Table, terms: Terms) -> Table:
    done_us = events["done_us"]
    each = with_partition(events).plus(
        second=terms.second(done_us),
        intended_second=terms.second(events["intended_us"]),
        events=np.ones(len(done_us), np.int64),
        refused=~is_counted(events) + 0,
        late=((done_us != NONE) & terms.late(events)) + 0,
        first_done_us=done_us,
        last_done_us=done_us,
        first_received_us=events["received_us"],
        max_us=latency(events),
        last_us=np.maximum(events["intended_us"], done_us),
    )
    return _aggregate(each, CELL_KEY)


def _aggregate(table: Table, keys: Sequence[str]) -> Table:
    groups = Groups(*(table[key] for key in keys))
    found = dict(zip(keys, groups.keys, strict=True))
    found |= {name: groups.sum(table[name]) for name in SUM_COLUMNS}
    found |= {name: groups.min(table[name]) for name in MIN_COLUMNS}
    found |= {name: groups.max(table[name]) for name in MAX_COLUMNS}
    return Table(found, table.names)


def event_counts(cells: Table) -> EventCounts:
    """Return the totals of `cells`."""
    done, counted = cells["second"] != NONE, cells["events"] - cells["refused"]
    by_second = Groups(cells["second"][done])
    events = by_second.sum(cells["events"][done])
    return EventCounts(
        rows=int(cells["events"].sum()),
        events=int(counted.sum()),
        in_sla=int((cells["events"] - cells["late"])[done].sum()),
        lost=int(counted[~done].sum()),
        refused=int(cells["refused"].sum()),
        last_us=int(cells["last_us"].max()) if len(done) else None,
        done=dict(zip(by_second.keys[0].tolist(), events.tolist(), strict=True)),
    )


def served(cells: Table) -> Table:
    """Return the completed events by partition, replica, epoch and second of completion, in this order."""
    return _aggregate(cells.where(cells["second"] != NONE), SERVICE_KEY)


def owned_arrivals(cells: Table) -> Table:
    """Return partition, intended second, owner, events and max_us (worst latency), by partition and second.

    The owner is the replica that served the partition last, in that second or before it.
    """
    there = cells.where(cells["second"] != NONE)
    order = np.lexsort([there["replica"], there["last_done_us"], there["second"], there["partition"]])
    last = order[np.roll(group_begins(there["partition"][order], there["second"][order]), -1)]
    by_intent = Groups(cells["partition"], cells["intended_second"])
    events = by_intent.sum(cells["events"] - cells["refused"])
    positive = events > 0
    partition, second = (key[positive] for key in by_intent.keys)
    found = find_rows([there["partition"][last], there["second"][last]], [partition, second])
    owner = take(there["replica"][last], found, -1)
    seen = running_max(np.where(owner >= 0, np.arange(len(owner)), -1), group_begins(partition))
    columns = {"events": events[positive], "max_us": by_intent.max(cells["max_us"])[positive]}
    return Table({"partition": partition, "second": second, "owner": take(owner, seen, -1), **columns}, cells.names)


def by_second(rows: Rows, terms: Terms) -> Table:
    """Return intended second, arrivals, p50, p99 and max (µs, nearest rank; NONE if no event was completed)."""
    return concat(rows.pieces(partial(_by_second, terms=terms), by="minute"), "second", "arrivals", *SERIES_RANKS)


def _by_second(events: Table, terms: Terms) -> Table:
    second, latency_us = terms.second(events["intended_us"]), latency(events)
    by_second, done = Groups(second), latency_us != NONE
    key, ranks = ranks_by_key(second[done], latency_us[done], SERIES_RANKS)
    place = find_rows([key], by_second.keys)
    ranks = {name: take(values, place) for name, values in ranks.items()}
    return Table({"second": by_second.keys[0], "arrivals": by_second.sizes, **ranks})


def ranks_by_key(keys: Ints, values: Ints, shown: Sequence[str]) -> tuple[Ints, dict[str, Ints]]:
    """Return the distinct keys, in order, and for each key the percentiles `shown` of its values."""
    keys, values = sort_pairs(keys, values)
    groups = Groups(keys)
    return groups.keys[0], {name: groups.ranks(values, PARTS_PER_MILLION[name]) for name in shown}


def shown_s(duration_s: float, started_us: int, last_us: int | None) -> int:
    """Return the number of seconds that series cover: workload and drain. last_us: latest intended or done time."""
    workload = max(1, math.ceil(duration_s))
    last = ((last_us or started_us) - started_us) // SECOND_US
    return min(max(workload, last + 1), workload + MAX_DRAIN_S)


def series(
    rows: Rows, done: Mapping[int, int], journal: Journal, terms: Terms, packing_replicas: Ints | None = None
) -> Series:
    """Return the series. done: second → completed events. packing_replicas: by second of the load; None: unknown."""
    found = by_second(rows, terms)
    place = find_rows([found["second"]], [np.arange(terms.shown_s)])
    unknown = (None,) * terms.shown_s
    requested, ready = (
        history.count_each_second(spans, terms.started_us, terms.shown_s) if journal.changes else unknown
        for spans in (history.paid_spans(journal.changes), history.ready_spans(journal.changes))
    )
    packing = () if packing_replicas is None else (*packing_replicas.tolist(), *unknown)[: terms.shown_s]
    return Series(
        arrivals=tuple(take(found["arrivals"], place, 0).tolist()),
        done=tuple(done.get(second, 0) for second in range(terms.shown_s)),
        **{f"{name}_s": tuple(map(in_seconds, take(found[name], place).tolist())) for name in SERIES_RANKS},
        requested_replicas=requested,
        ready_replicas=ready,
        lag=history.lag_each_second(journal.ticks, terms.started_us, terms.shown_s),
        packing_replicas=packing,
    )


def heat_map(arrived: Table, terms: Terms) -> HeatMap:
    """Return the worst latency of each partition in each cell of time. arrived: from `owned_arrivals`."""
    cell_s = max(1, -(-terms.shown_s // MAX_HEAT_CELLS))
    number = -(-terms.shown_s // cell_s)
    shown = (arrived["second"] >= 0) & (arrived["second"] < terms.shown_s) & (arrived["partition"] != UNKNOWN_PARTITION)
    visible = arrived.where(shown)
    groups = Groups(visible["partition"], visible["second"] // cell_s)
    last = groups.max(np.where(visible["owner"] >= 0, np.arange(len(visible["owner"])), NONE))
    owners = take(visible["owner"], np.where(last == NONE, -1, last), -1)
    partitions, line = np.unique(groups.keys[0], return_inverse=True)
    worst: list[list[float | None]] = [[None] * number for _ in partitions]
    owned: list[list[str | None]] = [[None] * number for _ in partitions]
    cells = zip(line.tolist(), groups.keys[1].tolist(), groups.max(visible["max_us"]).tolist(), owners, strict=True)
    for row, cell, max_us, owner in cells:
        worst[row][cell], owned[row][cell] = in_seconds(max_us), arrived.name(owner)
    return HeatMap(
        cell_s=float(cell_s),
        partitions=tuple(partitions.tolist()),
        max_s=tuple(map(tuple, worst)),
        owners=tuple(map(tuple, owned)),
    )


def in_seconds(time_us: int) -> float | None:
    """Return µs as seconds; None for NONE."""
    return None if time_us == NONE else time_us / 1e6
