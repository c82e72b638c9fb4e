"""Events of a simulated run as a table with the columns of live runs (events.parquet)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.run import Run


def timeline(run: Run, started_us: int = 0) -> dict[str, NDArray[Any]]:
    """Return column → values by event number. Columns of stages that a simulated run does not have are fully masked.

    started_us: epoch µs of second 0. Raises ValueError for a run whose events were not kept.
    """
    events = run.events
    count = len(events)
    if count != len(run.latency_us):
        raise ValueError("this run kept latencies only: its events have no timeline")
    never, none = np.ma.array(np.zeros(count, np.int64), mask=True), np.zeros(count, np.int64)
    written_us = np.array([plan.at_us for plan in run.plans])
    columns: dict[str, NDArray[Any]] = {
        "event_id": np.char.mod("event-%08d", np.arange(count)),
        "intended_us": started_us + events.intended_us,
        "placed_us": started_us + events.intended_us,  # a simulated generator is never late
        "accepted_us": never,
        "received_us": started_us + events.started_us,
        "done_us": started_us + events.done_us,
        "shipped_us": never,
        "notified_us": never,
        "partition": events.partition,
        "offset": _offsets(events.partition),
        "replica": np.array(run.replica_names)[events.replica],
        "epoch": np.searchsorted(written_us, events.started_us, side="right"),
        "accepted": np.ones(count, bool),
        "dead_letters": none,
    }
    requested, settled = np.ones(count, np.int64), 1 + np.bincount(run.repeated, minlength=count)
    carried = {"placed": none, "requested": requested, "settled": settled, "shipped": none, "notified": none}
    for prefix, records in carried.items():
        columns |= {f"{prefix}_records": records, f"{prefix}_differ": np.zeros(count, bool)}
    return columns


def _offsets(partition: NDArray[np.int32]) -> NDArray[np.int64]:
    order = np.argsort(partition, kind="stable")
    counts = np.bincount(partition)
    offsets = np.empty(len(partition), np.int64)
    offsets[order] = np.arange(len(partition)) - np.repeat(np.cumsum(counts) - counts, counts)
    return offsets
