"""From a scenario to what the simulator is told: settings of the world, and the policy inside its guards.

Reference policies are told beforehand what others must find out: the size of a bin, the peak, the bound's schedule.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from autoscaler.packing.least_bins import packed
from autoscaler.policies.registry import configured_policy
from autoscaler.ports import Policy
from autoscaler.simulator.settings import DeliverySettings, Failure, Observing, ServiceSettings, SimulationSettings
from bench.scenario import Scenario
from bench.simulation.sent import Sent
from contracts.delivery import RUNTIMES, Delivery
from contracts.membership import Work
from contracts.settings import picked
from contracts.validation import InvalidSettingsError
from loadgen.schedule import Spacing
from loadgen.shapes import IntArray
from report.measures import bin_capacity

CLAIRVOYANT: Final = "clairvoyant"


def delivery_of(scenario: Scenario) -> Delivery:
    """Return how plans are carried out, whichever of its two keys says so; the schedule of the bound has its own."""
    if scenario.autoscaler.policy == CLAIRVOYANT:
        return Delivery.INCREMENTAL
    return Delivery(scenario.payment.runtime or scenario.payment.delivery)


def settings_of(scenario: Scenario) -> SimulationSettings:
    """Return the world that the scenario describes. Raises InvalidSettingsError."""
    world, scaling, payment = scenario.simulation, scenario.autoscaler, scenario.payment
    try:
        settings = SimulationSettings(
            service=ServiceSettings(**picked(world, ServiceSettings), **picked(payment, Work)),
            delivery=DeliverySettings(
                delivery=delivery_of(scenario),
                pause_s=scaling.rebalance_time_s if world.pause_s is None else world.pause_s,
                rebalance_time_s=scaling.rebalance_time_s,
                heartbeat_s=payment.heartbeat_s,
                whole_batches=world.whole_batches,
            ),
            **picked(world, Observing),
            startup_s=None if world.startup_s == "gke" else world.startup_s,
            decision_interval_s=scaling.decision_interval_s,
            tick_offset_s=scaling.tick_offset_s,
            initial_replicas=scaling.initial_replicas,
            planned_rebalance_time_s=None if scaling.learn_rebalance_time else scaling.rebalance_time_s,
            failures=tuple(Failure(at_s, world.failures_known) for at_s in world.failures_s),
            session_s=payment.session_s,
            seed=scenario.seed,
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong
    return _free_of_charge(settings) if scaling.policy == CLAIRVOYANT else settings


def policy_of(scenario: Scenario, sent: Sent) -> Policy:
    """Return the scenario's policy inside its guards, as a live run has it. Raises InvalidSettingsError.

    sent: the reference policies are told about it beforehand.
    """
    try:
        return configured_policy(
            scenario.autoscaler,
            scenario.target,
            scenario.guards,
            told(scenario, sent) | scenario.policy,
            counts_only=delivery_of(scenario) in RUNTIMES,
            fallback=False,  # a policy that fails shall be seen to fail here
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong


def _free_of_charge(settings: SimulationSettings) -> SimulationSettings:
    """Return the world of the schedule of the bound: each second is arranged at its very start, and at no cost."""
    delivery = replace(settings.delivery, pause_s=0.0)
    return replace(settings, delivery=delivery, startup_s=0.0, decision_interval_s=1.0, tick_offset_s=0.0)


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
