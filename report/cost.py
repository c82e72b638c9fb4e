"""Compute the cost of a run, and the cost of the per-second packing, with which it is compared."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np

from contracts.journal import PlanWritten, TickRecord
from report import history
from report.history import Journal
from report.measures import IntArray, bin_capacity, bins, percentile_us
from report.result import Cost, StartupTimes
from report.run_info import RunInfo
from report.table import Table
from report.terms import TypicalTimes

MAX_SECONDS: Final = 200_000


def cost(run: RunInfo, started_us: int, journal: Journal, least: IntArray | None) -> Cost:
    """Return the cost of the run. least: replicas of the per-second packing in each second; None: unknown."""
    until_us = started_us + round(run.duration_s * 1e6)
    paid, ready = history.paid_spans(journal.changes), history.ready_spans(journal.changes)
    requested = history.replica_minutes(paid, started_us, until_us) if paid else None
    packing_minutes = None if least is None else int(least.sum()) / 60
    after = zip([None, *journal.plans], journal.plans, strict=False)
    in_run = [(before, plan) for before, plan in after if started_us <= plan.at_us < until_us]
    steps = [len(plan.replicas) - len(before.replicas) for before, plan in in_run if before is not None]
    return Cost(
        requested_replica_minutes=requested,
        ready_replica_minutes=history.replica_minutes(ready, started_us, until_us) if ready else None,
        packing_replica_minutes=packing_minutes,
        over_packing=requested / packing_minutes - 1 if requested is not None and packing_minutes else None,
        moved_partitions=sum(plan.moved for _, plan in in_run) if journal else None,
        rebalance_score=rebalance_score(in_run, journal.ticks),
        largest_up=max([0, *steps]) if journal else None,
        largest_down=max([0, *(-step for step in steps)]) if journal else None,
    )


def starts(journal: Journal) -> StartupTimes | None:
    """Return the start-up times of replicas; None if no replica became ready."""
    took = history.startup_times_us(journal.changes)
    if not took:
        return None
    p50, p99, longest = (percentile_us(np.array(took, np.int64), share) / 1e6 for share in (0.5, 0.99, 1.0))
    return StartupTimes(replicas=len(took), p50_s=p50, p99_s=p99, max_s=longest)


def packing_of(run: RunInfo, arrived: Table, typical: TypicalTimes) -> IntArray | None:
    """Return the replicas of the per-second packing in each second of the run.

    The service rate (μ) is that of the scenario, or else 1 / median service time. The result is None if μ is unknown,
    or if the run is longer than MAX_SECONDS.
    """
    service_rate = _service_rate(run, typical)
    seconds = int(run.duration_s)
    if service_rate is None or not 0 < seconds <= MAX_SECONDS:
        return None
    bursts = run.section("load").get("spacing") == "burst"
    try:
        capacity = bin_capacity(service_rate=service_rate, latency_target_s=run.latency_target_s, bursts=bursts)
    except ValueError:
        return None  # no replica serves even one event within the target
    counted = arrived.where((arrived["second"] >= 0) & (arrived["second"] < seconds))
    packed = np.zeros(seconds, np.int64)
    np.add.at(packed, counted["second"], np.minimum(counted["events"], capacity))
    return bins(packed, capacity)


def rebalance_score(
    plans: Sequence[tuple[PlanWritten | None, PlanWritten]], ticks: Sequence[TickRecord]
) -> float | None:
    """Return the mean load that a plan moves, in units of one replica's capacity; None: no plan has an assignment.

    plans: pairs (previous plan, plan). The load of a partition is its arrival rate divided by the service
    rate (μ), both from the newest tick before the plan.
    """
    seen = [tick for tick in ticks if tick.partitions and tick.service_rate > 0]
    times = [tick.at_us for tick in seen]
    scores = []
    for before, plan in plans:
        if before is None or before.assignment is None or plan.assignment is None or not seen:
            continue
        tick = seen[max(0, bisect_right(times, plan.at_us) - 1)]
        rates = {partition.partition: partition.arrival_rate for partition in tick.partitions}
        moved = [number for number, owner in plan.assignment.items() if before.assignment.get(number, owner) != owner]
        scores.append(sum(rates.get(int(number), 0.0) for number in moved) / tick.service_rate)
    return sum(scores) / len(scores) if scores else None


def _service_rate(run: RunInfo, typical: TypicalTimes) -> float | None:
    time_s = run.section("payment").get("service_time_s")
    if not (isinstance(time_s, int | float) and time_s > 0):
        return 1e6 / typical.service_us if typical.service_us else None
    return 1 / (time_s + (run.section("simulation").get("overhead_s", 0.0) if run.world == "simulated" else 0.0))
