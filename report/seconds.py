"""Event rows → tables by second of the run: small ones, from which series, heat map, packing and owners are read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from report import history
from report.history import Journal
from report.result import HeatMap, Series
from report.table import NONE, Groups, Ints, Rows, Table, begins, joined, places, running_max, taken
from report.terms import NOWHERE, SECOND_US, Terms, accounted, latency, placed

PARTS_PER_MILLION: Final = {
    "p50": 500_000, "p90": 900_000, "p95": 950_000, "p99": 990_000, "p999": 999_000, "p9999": 999_900, "max": 1_000_000,
}  # fmt: skip
"""Quantiles as integers: in binary fractions ⌈q·n⌉ may be one too high."""
SHOWN: Final = ("p50", "p99", "max")
DRAIN_SHOWN_S: Final = 600
"""Seconds after the workload that the series may cover: one record with an absurd time must not make a million."""
HEAT_CELLS: Final = 600
"""Most cells of a heat map in time: more would be narrower than a pixel."""
CELL: Final = ("partition", "replica", "epoch", "second", "intended_second")
SERVED: Final = CELL[:4]
SUMS: Final = ("events", "refused", "late")
LEAST: Final = ("first_done_us", "first_received_us")
LAST: Final = ("last_done_us", "max_us", "last_us")


@dataclass(frozen=True, slots=True)
class Shares:
    """Events of the whole run."""

    rows: int
    events: int
    """Not refused."""
    in_sla: int
    lost: int
    refused: int
    last_us: int | None
    """Latest intended or done time."""
    done: Mapping[int, int]
    """Second → events done in it."""


def cells(rows: Rows, terms: Terms) -> Table:
    """Return what the tables by second are made from, in one pass: some cells for each partition and second.

    partition, replica, epoch, second (of completion; NONE: never done), intended_second; events; refused, late (of
    those done); first_done_us, last_done_us; first_received_us; max_us: worst latency; last_us: latest intended or
    done time.
    """
    return _together(joined(rows.pieces(partial(_cells, terms=terms)), *CELL, *SUMS, *LEAST, *LAST), CELL)


def _cells(events: Table, terms: Terms) -> Table:
    done_us = events["done_us"]
    each = placed(events).plus(
        second=terms.second(done_us),
        intended_second=terms.second(events["intended_us"]),
        events=np.ones(len(done_us), np.int64),
        refused=~accounted(events) + 0,
        late=((done_us != NONE) & terms.late(events)) + 0,
        first_done_us=done_us,
        last_done_us=done_us,
        first_received_us=events["received_us"],
        max_us=latency(events),
        last_us=np.maximum(events["intended_us"], done_us),
    )
    return _together(each, CELL)


def _together(table: Table, keys: Sequence[str]) -> Table:
    groups = Groups(*(table[key] for key in keys))
    found = dict(zip(keys, groups.keys, strict=True))
    found |= {name: groups.sum(table[name]) for name in SUMS}
    found |= {name: groups.min(table[name]) for name in LEAST}
    found |= {name: groups.max(table[name]) for name in LAST}
    return Table(found, table.names)


def shares(cells: Table) -> Shares:
    """Count the events. cells: of the function of this name."""
    done, counted = cells["second"] != NONE, cells["events"] - cells["refused"]
    by_second = Groups(cells["second"][done])
    events = by_second.sum(cells["events"][done])
    return Shares(
        rows=int(cells["events"].sum()),
        events=int(counted.sum()),
        in_sla=int((cells["events"] - cells["late"])[done].sum()),
        lost=int(counted[~done].sum()),
        refused=int(cells["refused"].sum()),
        last_us=int(cells["last_us"].max()) if len(done) else None,
        done=dict(zip(by_second.keys[0].tolist(), events.tolist(), strict=True)),
    )


def served(cells: Table) -> Table:
    """Return partition, replica, epoch, second (of completion), and what was done there, in this order."""
    return _together(cells.where(cells["second"] != NONE), SERVED)


def owned(cells: Table) -> Table:
    """Return partition, second (of intent), events, max_us (worst latency) and owner, in this order.

    The owner served the partition last in that second, else in the seconds before it.
    """
    there = cells.where(cells["second"] != NONE)
    order = np.lexsort([there["replica"], there["last_done_us"], there["second"], there["partition"]])
    last = order[np.roll(begins(there["partition"][order], there["second"][order]), -1)]  # a row before each begin
    by_intent = Groups(cells["partition"], cells["intended_second"])
    events = by_intent.sum(cells["events"] - cells["refused"])
    kept = events > 0
    partition, second = (key[kept] for key in by_intent.keys)
    found = places([there["partition"][last], there["second"][last]], [partition, second])
    owner = taken(there["replica"][last], found, -1)
    seen = running_max(np.where(owner >= 0, np.arange(len(owner)), -1), begins(partition))
    columns = {"events": events[kept], "max_us": by_intent.max(cells["max_us"])[kept]}
    return Table({"partition": partition, "second": second, "owner": taken(owner, seen, -1), **columns}, cells.names)


def by_second(rows: Rows, terms: Terms) -> Table:
    """Return second (of intent), arrivals, p50, p99, max (µs, nearest rank; NONE where nothing was done)."""
    return joined(rows.pieces(partial(_by_second, terms=terms), by="minute"), "second", "arrivals", *SHOWN)


def _by_second(events: Table, terms: Terms) -> Table:
    second, latency_us = terms.second(events["intended_us"]), latency(events)
    every, done = Groups(second), latency_us != NONE
    key, ranks = ranked(second[done], latency_us[done], SHOWN)
    place = places([key], every.keys)
    ranks = {name: taken(values, place) for name, values in ranks.items()}
    return Table({"second": every.keys[0], "arrivals": every.sizes, **ranks})


def ranked(keys: Ints, values: Ints, shown: Sequence[str]) -> tuple[Ints, dict[str, Ints]]:
    """Return the distinct keys, in order, and of each the nearest ranks of its values."""
    order = np.lexsort([values, keys])
    groups = Groups(keys[order])
    return groups.keys[0], {name: groups.ranks(values[order], PARTS_PER_MILLION[name]) for name in shown}


def shown_s(duration_s: float, started_us: int, last_us: int | None) -> int:
    """Return how many seconds series cover: the workload, and the drain after it.

    last_us: the latest of all intended and done times.
    """
    workload = max(1, math.ceil(duration_s))
    last = ((last_us or started_us) - started_us) // SECOND_US
    return min(max(workload, last + 1), workload + DRAIN_SHOWN_S)


def series(
    rows: Rows, done: Mapping[int, int], journal: Journal, terms: Terms, packing_replicas: Ints | None = None
) -> Series:
    """Return one entry for each second shown. done: second → events done.

    packing_replicas: of the packing, by second of the workload; None: not known.
    """
    found = by_second(rows, terms)
    place = places([found["second"]], [np.arange(terms.shown_s)])
    unknown = (None,) * terms.shown_s
    requested, ready = (
        history.count_each_second(spans, terms.started_us, terms.shown_s) if journal.changes else unknown
        for spans in (history.paid(journal.changes), history.serving(journal.changes))
    )
    packing = () if packing_replicas is None else (*packing_replicas.tolist(), *unknown)[: terms.shown_s]
    return Series(
        arrivals=tuple(taken(found["arrivals"], place, 0).tolist()),
        done=tuple(done.get(second, 0) for second in range(terms.shown_s)),
        **{f"{name}_s": tuple(map(in_seconds, taken(found[name], place).tolist())) for name in SHOWN},
        requested_replicas=requested,
        ready_replicas=ready,
        lag=history.lag_each_second(journal.ticks, terms.started_us, terms.shown_s),
        packing_replicas=packing,
    )


def heat_map(arrived: Table, terms: Terms) -> HeatMap:
    """Return the worst latency of each partition in each cell of time. arrived: of `owned`."""
    cell_s = max(1, -(-terms.shown_s // HEAT_CELLS))
    number = -(-terms.shown_s // cell_s)
    shown = (arrived["second"] >= 0) & (arrived["second"] < terms.shown_s) & (arrived["partition"] != NOWHERE)
    some = arrived.where(shown)
    groups = Groups(some["partition"], some["second"] // cell_s)
    last = groups.max(np.where(some["owner"] >= 0, np.arange(len(some["owner"])), NONE))
    owners = taken(some["owner"], np.where(last == NONE, -1, last), -1)
    partitions, line = np.unique(groups.keys[0], return_inverse=True)
    worst: list[list[float | None]] = [[None] * number for _ in partitions]
    held: list[list[str | None]] = [[None] * number for _ in partitions]
    cells = zip(line.tolist(), groups.keys[1].tolist(), groups.max(some["max_us"]).tolist(), owners, strict=True)
    for row, cell, max_us, owner in cells:
        worst[row][cell], held[row][cell] = in_seconds(max_us), arrived.name(owner)
    return HeatMap(
        cell_s=float(cell_s),
        partitions=tuple(partitions.tolist()),
        max_s=tuple(map(tuple, worst)),
        owners=tuple(map(tuple, held)),
    )


def in_seconds(time_us: int) -> float | None:
    """Return µs in seconds; None for NONE."""
    return None if time_us == NONE else time_us / 1e6
