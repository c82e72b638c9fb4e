"""What a benchmark tells the reference policies beforehand: the size of a bin, the peak, the schedule of the bound."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from autoscaler.packing.least_bins import packed
from bench.scenario import Scenario
from bench.simulation.sent import Sent
from contracts.validation import InvalidSettingsError
from loadgen.schedule import Spacing
from loadgen.shapes import IntArray
from report.measures import bin_capacity

BIN_SHARE: Final = 0.85
"""Of the events that a replica serves within the target: 85 of 100, as CLOSER 2024 really packed."""
Packing = tuple[tuple[int, ...], ...]
"""Partitions by bin."""


def true_service_rate(scenario: Scenario) -> float:
    """Return μ in events/s of a replica of speed 1."""
    return 1 / (scenario.payment.service_time_s + scenario.simulation.overhead_s)


def bound_capacity(scenario: Scenario, sent: Sent) -> int:
    """Return the size of a bin of the bound, in events of one second. Raises InvalidSettingsError where it is 0."""
    try:
        return bin_capacity(
            service_rate=true_service_rate(scenario),
            latency_target_s=scenario.target.latency_target_s,
            bursts=sent.spacing is Spacing.BURST,
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong


def bound_schedule(table: IntArray, capacity: int) -> tuple[Packing, ...]:
    """Return the bins of each second that `bound_replica_minutes` counts; empty partitions are left out.

    table: events, shape (seconds, partitions).
    """
    largest_first = np.argsort(-table, axis=1, kind="stable")
    sizes = np.take_along_axis(table, largest_first, axis=1)
    return tuple(
        _with_partitions(packed(tuple(row), capacity).bins, row, partitions)
        for row, partitions in zip(sizes.tolist(), largest_first.tolist(), strict=True)
    )


def told(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    """Return options of the scenario's policy that follow from its world and its load; none for most policies."""
    teller = _TELLERS.get(scenario.autoscaler.policy)
    return teller(scenario, sent) if teller else {}


def _with_partitions(bins: tuple[tuple[int, ...], ...], sizes: list[int], partitions: list[int]) -> Packing:
    """Return the bins with partitions in place of sizes."""
    of_size: dict[int, list[int]] = {}
    for size, partition in zip(sizes, partitions, strict=True):
        of_size.setdefault(size, []).append(partition)
    return tuple(tuple(of_size[size].pop() for size in content) for content in bins)


def _bin(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    within_s = min(1.0, scenario.target.latency_target_s)
    return {"bin_events_per_s": round(BIN_SHARE * within_s * true_service_rate(scenario), 9)}


def _peak(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    """Every partition at its own peak: a group that nothing in this run can surprise."""
    if "replicas" in scenario.policy:
        return {}
    return _bin(scenario, sent) | {"peak_rates": tuple(map(float, sent.table().max(axis=0)))}


def _schedule(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    return {"schedule": bound_schedule(sent.table(), bound_capacity(scenario, sent))}


_TELLERS: Final[dict[str, Callable[[Scenario, Sent], dict[str, Any]]]] = {
    "paper-optimal": _bin,
    "overprovisioned": _peak,
    "clairvoyant": _schedule,
}
