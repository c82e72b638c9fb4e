"""Reproduce two papers of Ezzeddine et al., CLOSER 2024 and ICCBDC 2022: their statements, and runs that check them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from autoscaler.packing.bins import Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from bench.matrix import Job, Row
from loadgen.shapes import IntArray
from loadgen.workloads import find_workload
from studies.same_counts import BY_CHANCE, SAME_COUNTS, run_job
from studies.statements import Contrast, Interpretation, Printed, Run, fact, interpretations, under_best_interpretation
from studies.verdict import Statement, StudyResult, judge

Changes = Mapping[str, Any]
CLOSER_2024: Final = "Ezzeddine, Baude, Huet, CLOSER 2024 (W = 0.5 s, μ = 200)"
ICCBDC_2022: Final = "Ezzeddine, Migliorini, Baude, Huet, ICCBDC 2022 (W = 5 s, μ = 100, 95 measured)"
MAIN: Final[dict[tuple[str, str], dict[str, float]]] = {
    ("w1", "algorithm-2"): {"in_sla": 0.974, "replica_minutes": 30.21, "ups": 6, "downs": 6},
    ("w1", "linear"): {"in_sla": 0.947, "replica_minutes": 25.5, "ups": 6, "downs": 6},
    ("w1", "paper-optimal"): {"in_sla": 1.0, "replica_minutes": 32.7, "ups": 6, "downs": 6},
    ("w1", "overprovisioned"): {"in_sla": 1.0, "replica_minutes": 50.0, "ups": 0, "downs": 0},
    ("taxi", "algorithm-2"): {"in_sla": 0.989, "replica_minutes": 402.9, "ups": 20, "downs": 16},
    ("taxi", "linear"): {"in_sla": 0.954, "replica_minutes": 325.7, "ups": 23, "downs": 20},
    ("taxi", "paper-optimal"): {"in_sla": 1.0, "replica_minutes": 414.11, "ups": 20, "downs": 16},
    ("taxi", "overprovisioned"): {"in_sla": 1.0, "replica_minutes": 600.0, "ups": 0, "downs": 0},
    ("w1-skew9", "algorithm-2"): {"in_sla": 0.989, "replica_minutes": 29.8},
    ("w1-skew9", "linear"): {"in_sla": 0.847, "replica_minutes": 25.5},
    ("taxi-skew9", "algorithm-2"): {"in_sla": 0.9908, "replica_minutes": 392.15},
    ("taxi-skew9", "linear"): {"in_sla": 0.859, "replica_minutes": 329.7},
}
"""(scenario, policy) → printed figures."""
HEARTBEAT: Final[dict[tuple[str, float], dict[str, float]]] = {
    ("w1", 3.0): {"in_sla": 0.974},
    ("w1", 0.5): {"in_sla": 0.981, "max_below_s": 1.0},
    ("taxi", 3.0): {"in_sla": 0.989},
    ("taxi", 0.5): {"in_sla": 0.9907},
}
"""(scenario, heartbeat interval in s) → printed figures of Algorithm 2."""
REBALANCE: Final[dict[tuple[float, str], dict[str, float]]] = {
    (0.5, "algorithm-1"): {"in_sla": 0.901, "replica_minutes": 33.85},
    (0.5, "algorithm-2"): {"in_sla": 0.982, "replica_minutes": 34.61},
    (2.0, "algorithm-1"): {"in_sla": 0.854, "replica_minutes": 34.16},
    (2.0, "algorithm-2"): {"in_sla": 0.994, "replica_minutes": 44.7},
}
"""(rebalance time t_r in s, policy) → printed figures on W1."""
LOAD_AWARE, STICKY = "load-aware", "sticky"
PLACED: Final[dict[tuple[str, str, float], dict[str, float]]] = {
    ("w3", LOAD_AWARE, 1.0): {"in_sla": 1.0, "replica_minutes": 18.0},
    ("w3", STICKY, 1.0): {"in_sla": 0.44},
    ("w4", LOAD_AWARE, 1.0): {"in_sla": 1.0, "replica_minutes": 26.1},
    ("w4", STICKY, 1.0): {"in_sla": 0.77},
    ("w4", LOAD_AWARE, 30.0): {"in_sla": 0.86},
}
"""(scenario, assignment, decision interval in s) → printed figures of ICCBDC 2022. STICKY has the same counts."""

EAGER_CLUSTER: Final[Changes] = {"rebalance_protocol": "eager", "heartbeat_s": 3.0, "rebalance_time_s": 0.05}
"""Each rebalance stops the whole group for t_r. A member learns about it at its heartbeat, every 3 s by default."""
COOL_DOWN: Final[Changes] = {"cool_down_up_s": 10.0, "cool_down_down_s": 10.0}
UNKNOWN_OVERHEAD: Final[Changes] = {"slow_factor": 1.14, "slow_until_s": 86_400.0}
"""An event takes 5.7 ms, but policies assume a service rate (μ) of 200 events/s."""
POLLS: Final[Changes] = {"poll_events": 500}
"""The lag includes up to 500 events of a poll until they are committed. 500 is the default of Kafka's consumers."""
NO_HYSTERESIS: Final[Changes] = {"f_down": 0.9}
"""The printed cost of `linear` implies f_down = 0.9. With 0.4 the cost on W1 would be 30.6 replica-minutes."""
CLOSER_INTERPRETATIONS: Final[dict[str, Changes]] = {
    "text": {},
    "cool-down": COOL_DOWN,
    "cool-down, overhead": {**COOL_DOWN, "overhead_s": 0.0007},
    "cool-down, unknown overhead": {**COOL_DOWN, **UNKNOWN_OVERHEAD},
    "cool-down, polls": {**COOL_DOWN, **POLLS},
    "all switches": {**COOL_DOWN, **UNKNOWN_OVERHEAD, **POLLS},
    "cool-down, no hysteresis": {**COOL_DOWN, **NO_HYSTERESIS},
    "cool-down, unknown overhead, no hysteresis": {**COOL_DOWN, **UNKNOWN_OVERHEAD, **NO_HYSTERESIS},
}
"""Name of an interpretation → its settings, which are used for every row and policy."""
ICCBDC_INTERPRETATIONS: Final[dict[str, Changes]] = {
    "nominal": {},
    "μ 95": {"overhead_s": 0.000526},
    "μ 95, polls": {"overhead_s": 0.000526, **POLLS},
}
NO_COST: Final[Changes] = {"rebalance_protocol": "incremental", "pause_s": 0.0}
"""Starts and handovers take no time, because the papers computed their references without a run."""
REFERENCES: Final[dict[str, Changes]] = {"paper-optimal": {}, "overprovisioned": {"initial_replicas": 5}}
"""Reference policy → its settings."""
BIN_EVENTS: Final = 85
CLOSED_FORM: Final = "our taxi workload is a formula, because the published trace has no licence; it has less noise"
ONE_RUN: Final = "the paper measured a single run on a cluster"
CONTRADICTS_ITSELF: Final = "the curve in the paper adds up to 21.4 r-m"


def reproduce(folder: Path, *, seeds: int = 5, **how: Any) -> StudyResult:
    """Run the jobs of both papers, and compare the results with the statements."""
    papers = [list(closer()), list(iccbdc())]
    jobs = {run: run.jobs(seeds) for paper in papers for run in paper if isinstance(run, Run)}

    def compared(rows: Mapping[Job, Row]) -> Iterator[Statement]:
        return (row for paper in papers for row in under_best_interpretation(paper, jobs, rows))

    every = [job for by_reading in jobs.values() for some in by_reading.values() for job in some]
    return judge(every, run_job, compared, folder, partly=True, **how)


def closer() -> Iterator[Printed]:
    """Yield the statements of CLOSER 2024."""

    def where(table: str, what: str) -> dict[str, Any]:
        return {"paper": CLOSER_2024, "table": table, "what": what}

    for scenario, what, printed in (("w1", "W1", 350.0), ("taxi", "taxi", 368.0)):
        about = where(table="Figures of the workloads", what=f"{what}: peak, events/s")
        yield fact(**about, published=printed, ours=totals(scenario).max(), reservation=_reservation(scenario, ""))
    for scenario in ("w1", "taxi", "w1-skew9", "taxi-skew9"):
        skewed = scenario.endswith("skew9")
        table = "Skewed over nine partitions" if skewed else "Tables of W1 and taxi"
        by_policy = {
            policy: _run(table, f"{scenario}, {policy}", scenario, printed, _interpretations(policy, skewed=skewed))
            for (name, policy), printed in MAIN.items()
            if name == scenario
        }
        yield from by_policy.values()
        better, worse = by_policy["algorithm-2"], by_policy["linear"]
        yield Contrast(**where(table, f"{scenario}: algorithm-2 > linear"), better=better, worse=worse)
        if "paper-optimal" in by_policy:
            yield fact(
                **where(table=table, what=f"{scenario}, optimal by bins of {BIN_EVENTS}: r-m"),
                published=MAIN[scenario, "paper-optimal"]["replica_minutes"],
                ours=_packed_minutes(scenario),
                reading=f"⌈n/5⌉ in each partition, less than {BIN_EVENTS} in a bin",
                reservation=_reservation(scenario, ""),
            )
    for scenario in ("w1", "taxi"):
        rows = [(f"{scenario}, {s:g} s", "algorithm-2", {"heartbeat_s": s}, HEARTBEAT[scenario, s]) for s in (3.0, 0.5)]
        yield from _pair("Heartbeat 3 s and 0.5 s, Algorithm 2", scenario, rows, f"{scenario}: 0.5 s > 3 s")
    for s in (0.5, 2.0):
        what, row = f"t_r {s:g} s", {"rebalance_time_s": s}
        rows = [(f"{what}, {name}", name, row, REBALANCE[s, name]) for name in ("algorithm-1", "algorithm-2")]
        yield from _pair("Rebalances made longer, W1", "w1", rows, f"{what}: algorithm-2 > algorithm-1")
    for what, published, why in (
        ("start-up of a replica", "88 % within 10 to 50 s", "`tailpack compare w1 --axis startup` sweeps it"),
        ("99th percentile of the rebalance time", "50 ms", "ours is measured live (docs/explanation/handover.md)"),
    ):
        yield Statement(**where("Measured on their cluster", what), published=published, why=f"on their cluster; {why}")


def _pair(
    table: str, scenario: str, rows: Sequence[tuple[str, str, Changes, dict[str, float]]], contrast: str
) -> Iterator[Printed]:
    worse, better = (
        _run(table, what, scenario, printed, _interpretations(policy, row=row)) for what, policy, row, printed in rows
    )
    yield from (worse, better, Contrast(paper=CLOSER_2024, table=table, what=contrast, better=better, worse=worse))


def _interpretations(policy: str, *, skewed: bool = False, row: Changes | None = None) -> tuple[Interpretation, ...]:
    if policy in REFERENCES:
        return interpretations(policy, {"computed": NO_COST}, REFERENCES[policy])
    base = {**EAGER_CLUSTER, **({} if skewed else {"split": "random"})}
    return interpretations(policy, {name: {**base, **more} for name, more in CLOSER_INTERPRETATIONS.items()}, row)


def _run(table: str, what: str, scenario: str, printed: dict[str, float], tried: tuple[Interpretation, ...]) -> Run:
    return Run(
        paper=CLOSER_2024, table=table, what=what, scenario=scenario, printed=printed, interpretations=tried,
        reservation=_reservation(scenario),
    )  # fmt: skip


def _reservation(scenario: str, otherwise: str = ONE_RUN) -> str:
    return CLOSED_FORM if scenario.startswith("taxi") else otherwise


def iccbdc() -> Iterator[Printed]:
    """Yield the statements of ICCBDC 2022."""
    where = {"paper": ICCBDC_2022, "table": "Load-aware against sticky assignment, at the same counts"}
    yield fact(255, totals("w3").max(), **where | {"table": "Figures of the workloads", "what": "W3: peak, events/s"})
    rows = {
        (scenario, assigned, interval_s): Run(
            **where,
            what=f"{scenario}, ffd-2022, {assigned}, decisions each {interval_s:g} s",
            scenario=scenario,
            printed=printed,
            interpretations=_placed(assigned, {"decision_interval_s": interval_s}),
            reservation=CONTRADICTS_ITSELF if (scenario, assigned) == ("w3", LOAD_AWARE) else ONE_RUN,
        )
        for (scenario, assigned, interval_s), printed in PLACED.items()
    }
    for scenario in ("w3", "w4"):
        better, worse = (rows[scenario, assigned, 1.0] for assigned in (LOAD_AWARE, STICKY))
        yield from (better, worse)
        yield Contrast(**where, what=f"{scenario}: load-aware > sticky", better=better, worse=worse)
    frequent, slow = rows["w4", LOAD_AWARE, 1.0], rows["w4", LOAD_AWARE, 30.0]
    yield from (slow, Contrast(**where, what="w4: decisions each 1 s > each 30 s", better=frequent, worse=slow))


def _placed(assigned: str, row: Changes) -> tuple[Interpretation, ...]:
    every = {name: {**EAGER_CLUSTER, **more} for name, more in ICCBDC_INTERPRETATIONS.items()}
    by_chance = {f"{name}, by chance": changes for name, changes in every.items()}
    sticky = assigned == STICKY
    return interpretations("ffd-2022", every, row, SAME_COUNTS if sticky else "") + interpretations(
        "ffd-2022", by_chance, row, BY_CHANCE if sticky else ""
    )


def totals(workload: str) -> IntArray:
    """Return the events of each second, shape (seconds,)."""
    counts = np.asarray(find_workload(workload).counts())
    return counts if counts.ndim == 1 else np.asarray(counts.sum(axis=1))


def _packed_minutes(scenario: str) -> float:
    bins = Capacity(math.nextafter(BIN_EVENTS, 0.0), 1.0)
    each = np.ceil(totals(scenario) / 5)
    found = {
        load: max(1, len(least_loaded([Item(number, float(load), 0.0) for number in range(5)], bins)))
        for load in np.unique(each)
    }
    return sum(found[load] for load in each) / 60
