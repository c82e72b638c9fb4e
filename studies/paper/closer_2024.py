"""Ezzeddine, Baude, Huet: Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling, CLOSER 2024."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from autoscaler.packing.bins import Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from studies.paper.readings import closer, free
from studies.paper.statement import Beyond, Claim, Contrast, Fact, Statement, totals
from studies.published import (
    CLOSER_2024,
    CLOSER_2024_HEARTBEAT,
    CLOSER_2024_REBALANCE,
    Published,
)

TITLE: Final = "Ezzeddine, Baude, Huet, CLOSER 2024 (W = 0.5 s, μ = 200)"
WORKLOAD: Final = "Figures of the workloads"
MAIN: Final = "Tables of W1 and taxi"
SKEWED: Final = "Skewed over nine partitions"
HEARTBEAT: Final = "Heartbeat 3 s and 0.5 s, Algorithm 2"
REBALANCE: Final = "Rebalances made longer, W1"
MEASURED: Final = "Measured on their cluster"
BIN_EVENTS: Final = 85
REFERENCES: Final[dict[str, dict[str, int]]] = {"paper-optimal": {}, "overprovisioned": {"initial_replicas": 5}}
"""Policy → what is set: the second has all its replicas from the start."""
CLOSED_FORM: Final = "our taxi workload is a closed form: the published trace has no licence, and is rougher"
ONE_RUN: Final = "one run on a cluster stands behind it"


def statements() -> Iterator[Statement]:
    """Yield all that it says."""
    for scenario, what, printed in (("w1", "W1", 350.0), ("taxi", "taxi", 368.0)):
        peak = partial(lambda name: float(totals(name).max()), scenario)
        yield Fact(TITLE, WORKLOAD, f"{what}: peak, events/s", printed, peak, reservation=_reservation(scenario, ""))
    for table, scenario in ((MAIN, "w1"), (MAIN, "taxi"), (SKEWED, "w1-skew9"), (SKEWED, "taxi-skew9")):
        yield from _policies(table, scenario)
        yield from _optimal(scenario)
    yield from _heartbeat()
    yield from _rebalance()
    yield Beyond(
        TITLE,
        MEASURED,
        "start-up of a replica",
        "88 % within 10 to 50 s",
        "needs their nodes and image; `startup_s=gke` samples it, and `tailpack sweep startup` shows what it does",
    )
    yield Beyond(
        TITLE,
        MEASURED,
        "99th percentile of the rebalance time",
        "50 ms",
        "needs their cluster; what ours takes is measured live (docs/handover.md)",
    )


def _policies(table: str, scenario: str) -> Iterator[Statement]:
    """Yield the rows of one scenario, and that Algorithm 2 is better than Linear."""
    split = None if scenario.endswith("skew9") else "random"
    rows = {}
    for (name, policy), published in CLOSER_2024.items():
        if name == scenario:
            readings = free(policy, REFERENCES[policy]) if policy in REFERENCES else closer(policy, split=split)
            what = f"{scenario}, {policy}"
            rows[policy] = Claim(TITLE, table, what, scenario, published, readings, _reservation(scenario))
    yield from rows.values()
    yield Contrast(TITLE, table, f"{scenario}: algorithm-2 > linear", rows["algorithm-2"], rows["linear"])


def _optimal(scenario: str) -> Iterator[Statement]:
    """Yield the printed optimum by the packing that gives it: 85 events in a bin, not the text's 100."""
    printed = CLOSER_2024.get((scenario, "paper-optimal"))
    if printed and printed.replica_minutes:
        what = f"{scenario}, optimal by bins of {BIN_EVENTS}: r-m"
        setting = f"⌈n/5⌉ in each partition, less than {BIN_EVENTS} in a bin"
        ours = partial(_packed_minutes, scenario)
        yield Fact(TITLE, MAIN, what, printed.replica_minutes, ours, setting, _reservation(scenario, ""))


def _heartbeat() -> Iterator[Statement]:
    for scenario in ("w1", "taxi"):
        slow, fast = (
            _with(
                {"heartbeat_s": seconds},
                published,
                table=HEARTBEAT,
                what=f"{scenario}, {seconds:g} s",
                scenario=scenario,
                policy="algorithm-2",
            )
            for (name, seconds), published in CLOSER_2024_HEARTBEAT.items()
            if name == scenario
        )
        yield from (slow, fast)
        yield Contrast(TITLE, HEARTBEAT, f"{scenario}: 0.5 s > 3 s", fast, slow)


def _rebalance() -> Iterator[Statement]:
    for asked_s in (0.5, 2.0):
        first, second = (
            _with(
                {"rebalance_time_s": seconds},
                published,
                table=REBALANCE,
                what=f"t_r {seconds:g} s, {policy}",
                scenario="w1",
                policy=policy,
            )
            for (seconds, policy), published in CLOSER_2024_REBALANCE.items()
            if seconds == asked_s
        )
        yield from (first, second)
        yield Contrast(TITLE, REBALANCE, f"t_r {asked_s:g} s: algorithm-2 > algorithm-1", second, first)


def _with(row: dict[str, Any], published: Published, *, table: str, what: str, scenario: str, policy: str) -> Claim:
    """Return a row that is about one setting, `row`."""
    return Claim(TITLE, table, what, scenario, published, closer(policy, row=row), _reservation(scenario))


def _reservation(scenario: str, otherwise: str = ONE_RUN) -> str:
    return CLOSED_FORM if scenario.startswith("taxi") else otherwise


def _packed_minutes(scenario: str) -> float:
    """Return the replica-minutes of Least-Loaded second by second, ⌈n/5⌉ events in each of five partitions."""
    bins = Capacity(math.nextafter(BIN_EVENTS, 0.0), 1.0)
    each = np.ceil(totals(scenario) / 5)
    found = {
        load: max(1, len(least_loaded([Item(number, float(load), 0.0) for number in range(5)], bins)))
        for load in np.unique(each)
    }
    return sum(found[load] for load in each) / 60
