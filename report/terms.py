"""What every part of a report must know of the run: its terms, what an event's times are, and what is usual."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from report.measures import percentile_us
from report.table import NONE, Ints, Mask, Rows, Table, before, begins, coalesce, least, minus

SECOND_US: Final = 1_000_000
TIMES: Final = ("intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us")
NOWHERE: Final = -1
"""Partition of an event of which nobody knows where it lay."""
SAMPLED_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Usual:
    """Medians of the run, µs; 0 where unknown."""

    service_us: int = 0
    """From received, and the replica's event before it done, until done."""
    transit_us: int = 0
    """From handed on (accepted, in payment-only runs placed) until received."""
    sending_us: int = 0
    """From placed until accepted by Order."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Times are µs since the epoch, lengths µs."""

    started_us: int
    """Second 0."""
    target_us: int
    """The latency target."""
    shown_s: int = 0
    """Seconds that series cover: the workload and the drain after it."""
    pipeline: bool = False
    """Whether events pass Order first; else they are Payment's own."""
    usual: Usual = Usual()

    def second(self, times_us: Ints) -> Ints:
        """Return the second of the run in which each time lies; before the start negative."""
        return np.where(times_us == NONE, NONE, (times_us - self.started_us) // SECOND_US)

    def late(self, events: Table) -> Mask:
        """Return whether an event took longer than the target, or was never done."""
        took_us = latency(events)
        return np.asarray((took_us == NONE) | (took_us > self.target_us))


def latency(events: Table) -> Ints:
    """Return how long an event took, µs: from when it was intended until it was done; NONE: never done."""
    return minus(events["done_us"], events["intended_us"])


def done(events: Table) -> Table:
    """Return the events that were done."""
    return events.where(events["done_us"] != NONE)


def accounted(events: Table) -> Mask:
    """Return whether an event counts: whatever was not refused does."""
    return np.asarray((events["done_us"] != NONE) | (events["dead_letters"] == 0))


def placed(events: Table) -> Table:
    """Return the events; those of which nobody knows where they lay are in the partition `NOWHERE`."""
    return events.plus(partition=np.maximum(events["partition"], NOWHERE))


def handed(events: Table) -> Ints:
    """Return when an event was handed on: accepted by Order, in payment-only runs placed."""
    return least(coalesce(events["accepted_us"], events["placed_us"], events["intended_us"]), events["done_us"])


def ready(events: Table) -> Ints:
    """Return when its owner had received an event."""
    return least(coalesce(events["received_us"], handed(events)), events["done_us"])


def in_line(events: Table, *lines: Ints) -> Ints:
    """Return the order in which the events of each line were done: no two events differ in nothing that it asks."""
    order = (events["done_us"], events["partition"], events["offset"], events["intended_us"])
    return np.lexsort([*order[::-1], *lines[::-1]])


def usual(rows: Rows, terms: Terms) -> Usual:
    """Return the medians of the events done in some sixty whole seconds, spread over the run evenly.

    Where replicas receive late because they are busy (a simulated replica receives when it begins to serve) the median
    says nothing of the way: the transit is taken as a twentieth of the target at most.
    """
    found = rows.pieces(partial(_lengths, terms=terms), by="replica")
    every = [np.concatenate(lengths) for lengths in zip(*found, strict=True)]
    service_us, transit_us, sending_us = (max(0, percentile_us(one, 0.5)) if len(one) else 0 for one in every)
    return Usual(service_us, min(transit_us, terms.target_us // 20), sending_us)


def _lengths(events: Table, terms: Terms) -> list[Ints]:
    second = terms.second(events["done_us"])
    every = max(1, terms.shown_s // SAMPLED_SECONDS)
    some = events.where((second != NONE) & (second % every == 0))
    some = some.where(in_line(some, some["replica"], terms.second(some["done_us"])))
    second = terms.second(some["done_us"])
    last_us = before(some["done_us"], begins(some["replica"], second))
    served = (last_us != NONE) & (some["received_us"] != NONE) & (some["replica"] >= 0)
    service = np.where(served, minus(some["done_us"], np.maximum(some["received_us"], last_us)), NONE)
    transit = minus(some["received_us"], coalesce(some["accepted_us"], some["placed_us"]))
    sending = minus(some["accepted_us"], some["placed_us"])
    return [lengths[lengths != NONE] for lengths in (service, transit, sending)]
