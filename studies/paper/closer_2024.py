"""Ezzeddine, Baude, Huet: Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling, CLOSER 2024."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from autoscaler.packing.bins import Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from loadgen.workloads import WORKLOADS
from studies.paper.claim import Beyond, Claim, Contrast, Fact
from studies.paper.paper import Paper, Statement
from studies.paper.readings import closer, free
from studies.published import CLOSER_2024, CLOSER_2024_HEARTBEAT, CLOSER_2024_OPTIMAL, CLOSER_2024_REBALANCE

TITLE: Final = "Ezzeddine, Baude, Huet, CLOSER 2024 (W = 0.5 s, μ = 200)"
WORKLOAD: Final = "Figures of the workloads"
MAIN: Final = "Tables of W1 and taxi"
SKEWED: Final = "Skewed over nine partitions"
HEARTBEAT: Final = "Heartbeat 3 s and 0.5 s, Algorithm 2"
REBALANCE: Final = "Rebalances made longer, W1"
REFERENCES: Final = ("paper-optimal", "overprovisioned")
CLOSED_FORM: Final = "our taxi workload is a closed form: the published trace has no licence, and is rougher"
ONE_RUN: Final = "one run on a cluster stands behind it"


def paper() -> Paper:
    """Return all that it says."""
    return Paper(TITLE, (*_workloads(), *_main(), *_skewed(), *_heartbeat(), *_rebalance(), *_measured()))


def _workloads() -> Iterator[Statement]:
    for scenario, what, printed in (("w1", "W1", 350.0), ("taxi", "taxi", 368.0)):
        counts = partial(_peak, scenario)
        yield Fact(TITLE, WORKLOAD, f"{what}: peak, events/s", printed, counts, reservation=_reservation(scenario, ""))
    yield Fact(TITLE, WORKLOAD, "taxi: events", 1_312_212, partial(_events, "taxi"), reservation=CLOSED_FORM)


def _main() -> Iterator[Statement]:
    for scenario in ("w1", "taxi"):
        rows = {policy: _claim(MAIN, scenario, policy) for name, policy in CLOSER_2024 if name == scenario}
        yield from rows.values()
        yield _better(MAIN, scenario, rows)
        for (name, events), printed in CLOSER_2024_OPTIMAL.items():
            if name == scenario:
                what = f"{scenario}, optimal by bins of {events}: r-m"
                ours = partial(_packed_minutes, scenario, float(events))
                setting = f"⌈n/5⌉ in each partition, {'less than ' if events == 85 else ''}{events} in a bin"
                yield Fact(TITLE, MAIN, what, printed, ours, setting, _reservation(scenario, ""))


def _skewed() -> Iterator[Statement]:
    for scenario in ("w1-skew9", "taxi-skew9"):
        rows = {policy: _claim(SKEWED, scenario, policy) for name, policy in CLOSER_2024 if name == scenario}
        yield from rows.values()
        yield _better(SKEWED, scenario, rows)


def _heartbeat() -> Iterator[Statement]:
    rows = {
        (scenario, heartbeat_s): Claim(
            TITLE,
            HEARTBEAT,
            f"{scenario}, {heartbeat_s:g} s",
            scenario,
            published,
            closer("algorithm-2", row={"heartbeat_s": heartbeat_s}),
            _reservation(scenario),
        )
        for (scenario, heartbeat_s), published in CLOSER_2024_HEARTBEAT.items()
    }
    for scenario in ("w1", "taxi"):
        yield rows[scenario, 3.0]
        yield rows[scenario, 0.5]
        yield Contrast(TITLE, HEARTBEAT, f"{scenario}: 0.5 s > 3 s", rows[scenario, 0.5], rows[scenario, 3.0])


def _rebalance() -> Iterator[Statement]:
    rows = {
        (seconds, policy): Claim(
            TITLE,
            REBALANCE,
            f"t_r {seconds:g} s, {policy}",
            "w1",
            published,
            closer(policy, row={"rebalance_time_s": seconds}),
            ONE_RUN,
        )
        for (seconds, policy), published in CLOSER_2024_REBALANCE.items()
    }
    for seconds in (0.5, 2.0):
        first, second = rows[seconds, "algorithm-1"], rows[seconds, "algorithm-2"]
        yield first
        yield second
        yield Contrast(TITLE, REBALANCE, f"t_r {seconds:g} s: algorithm-2 > algorithm-1", second, first)


def _measured() -> Iterator[Statement]:
    table = "Measured on their cluster"
    yield Beyond(
        TITLE,
        table,
        "start-up of a replica",
        "88 % within 10 to 50 s",
        "needs their nodes and image; `startup_s=gke` samples it, and `tailpack sweep startup` shows what it does",
    )
    yield Beyond(
        TITLE,
        table,
        "99th percentile of the rebalance time",
        "50 ms",
        "needs their cluster; what ours takes is measured live (docs/handover.md)",
    )


def _claim(table: str, scenario: str, policy: str) -> Claim:
    """Return a row of the main tables."""
    split = None if scenario.endswith("skew9") else "random"
    readings = free(policy) if policy in REFERENCES else closer(policy, split=split)
    published = CLOSER_2024[scenario, policy]
    return Claim(TITLE, table, f"{scenario}, {policy}", scenario, published, readings, _reservation(scenario))


def _better(table: str, scenario: str, rows: dict[str, Claim]) -> Contrast:
    return Contrast(TITLE, table, f"{scenario}: algorithm-2 > linear", rows["algorithm-2"], rows["linear"])


def _reservation(scenario: str, otherwise: str = ONE_RUN) -> str:
    return CLOSED_FORM if scenario.startswith("taxi") else otherwise


def _peak(scenario: str) -> float:
    return float(np.max(WORKLOADS[scenario].counts()))


def _events(scenario: str) -> float:
    return float(np.sum(WORKLOADS[scenario].counts()))


def _packed_minutes(scenario: str, capacity: float) -> float:
    """Return the replica-minutes of Least-Loaded second by second, ⌈n/5⌉ events in each of five partitions."""
    below = math.nextafter(capacity, 0.0) if capacity == 85 else capacity
    bins = Capacity(below, 1.0)
    each = np.ceil(np.asarray(WORKLOADS[scenario].counts()) / 5)
    found = {
        load: max(1, len(least_loaded([Item(number, float(load), 0.0) for number in range(5)], bins)))
        for load in np.unique(each)
    }
    return sum(found[load] for load in each) / 60
