"""Compute exact percentiles of each stage, partition, replica and plan epoch, and the latency distribution."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from report.result import STAGES, Breakdown, Breakdowns, Distribution, Stage
from report.seconds import PARTS_PER_MILLION, ranks_by_key
from report.table import NONE, Groups, Ints, Rows, Table, coalesce, concat, minus, nearest_rank
from report.terms import latency

BUCKETS_PER_DECADE: Final = 50
"""Resolution of the latency distribution: 50 latencies between 1 ms and 10 ms, each 4.7 % above the one before."""
SPANS: Final = {
    "sla": ("intended_us", "done_us"),
    "lateness": ("intended_us", "placed_us"),
    "sending": ("placed_us", "accepted_us"),
    "queueing": ("handed_us", "received_us"),
    "serving": ("received_us", "done_us"),
    "shipping": ("done_us", "shipped_us"),
    "notifying": ("sent_us", "notified_us"),
    "end-to-end": ("intended_us", "notified_us"),
}
"""Measure → columns of its first and last step. `handed_us` is accepted_us, or placed_us in payment-only runs.
`sent_us` is shipped_us, or done_us if nothing is shipped."""
BREAKDOWN_RANKS: Final = ("p50", "p99", "p999", "max")


def spans(events: Table) -> dict[str, Ints]:
    """Return measure → durations of all events, µs. A duration is NONE if the event lacks its first or last step."""
    ends = {
        "handed_us": coalesce(events["accepted_us"], events["placed_us"]),
        "sent_us": coalesce(events["shipped_us"], events["done_us"]),
    }
    each = events.plus(**ends)
    return {name: minus(each[end], each[begin]) for name, (begin, end) in SPANS.items()}


class ValueCounts:
    """Sorted distinct values with cumulative counts, for exact percentiles."""

    def __init__(self, values: Ints, equal: Ints) -> None:
        self.values, place = np.unique(values, return_inverse=True)
        equal_to = np.zeros(len(self.values), np.int64)
        np.add.at(equal_to, place, equal)
        self.upto = np.cumsum(equal_to)
        self.number = int(self.upto[-1]) if len(self.upto) else 0

    def rank(self, name: str) -> float | None:
        """Return a nearest-rank percentile (a key of PARTS_PER_MILLION) in seconds; None without values."""
        if not self.number:
            return None
        place = nearest_rank(self.upto[-1:], PARTS_PER_MILLION[name])
        return int(self.values[np.searchsorted(self.upto, place)][0]) / 1e6


def measure_spans(rows: Rows) -> dict[str, ValueCounts]:
    """Return measure → its values, for all SPANS."""
    found = rows.pieces(_counted)
    return {
        name: ValueCounts(*(np.concatenate(parts) for parts in zip(*(piece[name] for piece in found), strict=True)))
        for name in SPANS
    }


def _counted(events: Table) -> dict[str, tuple[Ints, Ints]]:
    return {name: np.unique(span[span != NONE], return_counts=True) for name, span in spans(events).items()}


def stages(found: Mapping[str, ValueCounts]) -> tuple[Stage, ...]:
    """Return the stages that at least one event passed. found: from `measure_spans`."""
    return tuple(
        Stage(stage=name, events=of.number, **{f"{rank}_s": of.rank(rank) for rank in PARTS_PER_MILLION})
        for name, of in ((name, found[name]) for name in STAGES)
        if of.number
    )


def distribution(latencies: ValueCounts, total: int) -> Distribution:
    """Return the share of `total` events at or below each latency, with BUCKETS_PER_DECADE latencies per decade."""
    bucket = np.ceil(np.log10(np.maximum(latencies.values, 1)) * BUCKETS_PER_DECADE)
    last = np.append(np.flatnonzero(np.diff(bucket)), len(bucket) - 1) if len(bucket) else np.empty(0, np.int64)
    return Distribution(
        share=tuple(upto / total for upto in latencies.upto[last].tolist()),
        latency_s=tuple(10 ** (edge / BUCKETS_PER_DECADE) / 1e6 for edge in bucket[last].tolist()),
    )


def breakdowns(rows: Rows, cells: Table) -> Breakdowns:
    """Return the latencies and late events of each partition, replica and plan epoch. cells: from `seconds.cells`."""
    return Breakdowns(
        partitions=_by(rows, cells, "partition"), replicas=_by(rows, cells, "replica"), epochs=_by(rows, cells, "epoch")
    )


def _by(rows: Rows, cells: Table, key: str) -> tuple[Breakdown, ...]:
    def name_of(table: Table, number: int) -> str | int | None:
        return table.name(number) if key == "replica" else None if number < 0 else number

    late = Groups(cells[key])
    names = (name_of(cells, number) for number in late.keys[0].tolist())
    late_of = dict(zip(names, late.sum(cells["late"]), strict=True))
    found = concat(rows.pieces(partial(_ranks, key=key), by=key), key, "events", *BREAKDOWN_RANKS)
    named = [(name_of(found, number), row) for row, number in enumerate(found[key].tolist())]
    return tuple(
        Breakdown(
            name="unknown" if name is None else str(name),
            events=int(found["events"][row]),
            late=int(late_of[name]),
            **{f"{rank}_s": int(found[rank][row]) / 1e6 for rank in BREAKDOWN_RANKS},
        )
        for name, row in sorted(named, key=lambda pair: (pair[0] is None, len(str(pair[0])), str(pair[0])))
    )


def _ranks(events: Table, key: str) -> Table:
    latency_us = latency(events)
    known = latency_us != NONE
    of, ranks = ranks_by_key(events[key][known], latency_us[known], BREAKDOWN_RANKS)
    return Table({key: of, "events": np.unique(events[key][known], return_counts=True)[1], **ranks}, events.names)
