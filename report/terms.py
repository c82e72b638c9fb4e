"""Start and target of the run, times of its events, and typical durations, which all parts of a report use."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from report.measures import percentile_us
from report.table import NONE, Ints, Mask, Rows, Table, coalesce, group_begins, least, minus, previous

SECOND_US: Final = 1_000_000
TIME_COLUMNS: Final = ("intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us")
UNKNOWN_PARTITION: Final = -1
"""Partition of an event whose partition is unknown."""
MAX_SAMPLED_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class TypicalTimes:
    """Median durations of the run, µs; 0: unknown."""

    service_us: int = 0
    """Time of service: until done, from received or from the end of the replica's previous event if that is later."""
    transit_us: int = 0
    """From accepted (payment-only runs: placed) until received."""
    sending_us: int = 0
    """From placed until accepted by Order."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Start, target and shape of a run. Times are µs since 1970, durations are µs."""

    started_us: int
    """Start of second 0."""
    target_us: int
    """The latency target."""
    shown_s: int = 0
    """Number of seconds that series cover: the workload and the drain after it."""
    pipeline: bool = False
    """Whether events pass Order before Payment."""
    typical: TypicalTimes = TypicalTimes()

    def second(self, times_us: Ints) -> Ints:
        """Return the second of the run of each time; negative before the start."""
        return np.where(times_us == NONE, NONE, (times_us - self.started_us) // SECOND_US)

    def late(self, events: Table) -> Mask:
        """Return whether each event took longer than the target, or was never completed."""
        took_us = latency(events)
        return np.asarray((took_us == NONE) | (took_us > self.target_us))


def latency(events: Table) -> Ints:
    """Return the latency of each event, µs: done − intended; NONE: never completed."""
    return minus(events["done_us"], events["intended_us"])


def completed(events: Table) -> Table:
    """Return the completed events."""
    return events.where(events["done_us"] != NONE)


def is_counted(events: Table) -> Mask:
    """Return whether each event counts. Refused events do not."""
    return np.asarray((events["done_us"] != NONE) | (events["dead_letters"] == 0))


def with_partition(events: Table) -> Table:
    """Return the events with `UNKNOWN_PARTITION` in place of unknown partitions."""
    return events.plus(partition=np.maximum(events["partition"], UNKNOWN_PARTITION))


def handed_on_us(events: Table) -> Ints:
    """Return when each event was sent to Payment's topic, µs: accepted by Order, or placed in payment-only runs."""
    return least(coalesce(events["accepted_us"], events["placed_us"], events["intended_us"]), events["done_us"])


def received_us(events: Table) -> Ints:
    """Return when a replica received each event, µs."""
    return least(coalesce(events["received_us"], handed_on_us(events)), events["done_us"])


def service_order(events: Table, *lines: Ints) -> Ints:
    """Return row numbers, sorted by the `lines` and then by completion, partition, offset and scheduled time."""
    order = (events["done_us"], events["partition"], events["offset"], events["intended_us"])
    return np.lexsort([*order[::-1], *lines[::-1]])


def typical(rows: Rows, terms: Terms) -> TypicalTimes:
    """Return the median durations in about sixty seconds that are spread evenly over the run.

    The transit, the time until a replica receives an event, is limited to a twentieth of the target, because a busy
    replica receives events late. A simulated replica receives an event when its service starts.
    """
    found = rows.pieces(partial(_lengths, terms=terms), by="replica")
    columns = [np.concatenate(lengths) for lengths in zip(*found, strict=True)]
    service_us, transit_us, sending_us = (
        max(0, percentile_us(lengths, 0.5)) if len(lengths) else 0 for lengths in columns
    )
    return TypicalTimes(service_us, min(transit_us, terms.target_us // 20), sending_us)


def _lengths(events: Table, terms: Terms) -> list[Ints]:
    second = terms.second(events["done_us"])
    step_s = max(1, terms.shown_s // MAX_SAMPLED_SECONDS)
    sample = events.where((second != NONE) & (second % step_s == 0))
    sample = sample.where(service_order(sample, sample["replica"], terms.second(sample["done_us"])))
    second = terms.second(sample["done_us"])
    last_us = previous(sample["done_us"], group_begins(sample["replica"], second))
    served = (last_us != NONE) & (sample["received_us"] != NONE) & (sample["replica"] >= 0)
    service = np.where(served, minus(sample["done_us"], np.maximum(sample["received_us"], last_us)), NONE)
    transit = minus(sample["received_us"], coalesce(sample["accepted_us"], sample["placed_us"]))
    sending = minus(sample["accepted_us"], sample["placed_us"])
    return [lengths[lengths != NONE] for lengths in (service, transit, sending)]
