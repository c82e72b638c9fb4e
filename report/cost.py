"""What a run cost, and what it could not have cost less than."""

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
from report.terms import Usual

MOST_SECONDS: Final = 200_000


def cost(run: RunInfo, started_us: int, journal: Journal, least: IntArray | None) -> Cost:
    """Return requested and ready replica-minutes, the per-second packing in all, and the moves of the run's plans."""
    until_us = started_us + round(run.duration_s * 1e6)
    paid, ready = history.paid(journal.changes), history.serving(journal.changes)
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
    """Return how long replicas took to start."""
    took = history.started_us(journal.changes)
    if not took:
        return None
    p50, p99, longest = (percentile_us(np.array(took, np.int64), share) / 1e6 for share in (0.5, 0.99, 1.0))
    return StartupTimes(replicas=len(took), p50_s=p50, p99_s=p99, max_s=longest)


def packing_of(run: RunInfo, arrived: Table, usual: Usual) -> IntArray | None:
    """Return the least replicas that hold each second's own events, by second; None: no μ, or too long.

    μ is the scenario's, else what services usually took. Bursts: where the scenario says so.
    """
    service_rate = _service_rate(run, usual)
    seconds = int(run.duration_s)
    if service_rate is None or not 0 < seconds <= MOST_SECONDS:
        return None
    bursts = run.section("load").get("spacing") == "burst"
    try:
        capacity = bin_capacity(service_rate=service_rate, latency_target_s=run.latency_target_s, bursts=bursts)
    except ValueError:
        return None  # a replica that cannot serve one event within the target holds no bin
    some = arrived.where((arrived["second"] >= 0) & (arrived["second"] < seconds))
    held = np.zeros(seconds, np.int64)
    np.add.at(held, some["second"], np.minimum(some["events"], capacity))
    return bins(held, capacity)


def rebalance_score(
    plans: Sequence[tuple[PlanWritten | None, PlanWritten]], ticks: Sequence[TickRecord]
) -> float | None:
    """Return the load that changed its owner, in replicas, per plan; None without plans that place partitions.

    plans: each with the plan before. A partition's load is its arrival rate over μ as the newest tick saw them.
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


def _service_rate(run: RunInfo, usual: Usual) -> float | None:
    time_s = run.section("payment").get("service_time_s")
    if not (isinstance(time_s, int | float) and time_s > 0):
        return 1e6 / usual.service_us if usual.service_us else None
    return 1 / (time_s + (run.section("simulation").get("overhead_s", 0.0) if run.world == "simulated" else 0.0))
