"""A made-up comparison as a page: `python tests/support/example_comparison.py comparison.html`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from report.comparison import Contestant, RunComparison, ScenarioCompared
from report.page.comparison_page import write_comparison
from report.statistics import bootstrap_interval, paired_difference, pareto_front

REFERENCE = "tail-aware"
MADE_UP = (
    (REFERENCE, 0.9994, 24.1, 0.47), ("algorithm-2", 0.9989, 26.3, 0.52), ("algorithm-1", 0.9951, 23.2, 0.61),
    ("linear", 0.991, 29.8, 0.9), ("overprovisioned", 0.9999, 40.0, 0.21), ("keda-hpa", 0.99942, 24.2, 0.48),
)  # fmt: skip
"""Label, share in time, replica-minutes, p99.9."""
SEEDS = 12


def example_comparison() -> RunComparison:
    """Return six policies over twelve seeds."""
    chance = np.random.default_rng(5)
    weather = chance.normal(0, 1, SEEDS)
    runs = {
        label: (
            np.clip(share - 2e-4 * weather - (1 - share) * 0.2 * np.abs(chance.normal(0, 1, SEEDS)), 0, 1),
            cost + 0.3 * weather + 0.15 * chance.normal(0, 1, SEEDS),
            p999 * (1 + 0.05 * weather + 0.04 * chance.normal(0, 1, SEEDS)),
        )
        for label, share, cost, p999 in MADE_UP
    }
    front = pareto_front([(float(share.mean()), float(cost.mean())) for share, cost, _ in runs.values()])
    scenario = ScenarioCompared(
        scenario="w1",
        settings=(),
        latency_target_s=0.5,
        percentile=0.999,
        reference=REFERENCE,
        packing_replica_minutes=20.4,
        contestants=tuple(
            Contestant(
                label=label, policy=label, world="simulated", runs=SEEDS, in_sla=bootstrap_interval(share.tolist()),
                p99_s=None, p999_s=bootstrap_interval(p999.tolist()), replica_minutes=bootstrap_interval(cost.tolist()),
                on_front=position in front,
                **({} if label == REFERENCE else differences(runs[label], runs[REFERENCE])),
            )
            for position, (label, (share, cost, p999)) in enumerate(runs.items())
        ),
    )  # fmt: skip
    return RunComparison(
        verdict="tail-aware keeps 99.9 % in time for the least; overprovisioned keeps more for two thirds more.",
        scenarios=(scenario,),
        problems=(),
        method="Bootstrap intervals (95 %, 10,000 resamples) over 12 seeds, paired by seed.",
        command="tailpack compare --scenario w1 --seeds 12",
    )


def differences(one: Sequence[Any], reference: Sequence[Any]) -> dict[str, Any]:
    names = ("in_sla_difference", "replica_minutes_difference", "p999_difference_s")
    sides = zip(names, one, reference, strict=True)
    return {"pairs": SEEDS} | {name: paired_difference(a.tolist(), b.tolist()) for name, a, b in sides}


if __name__ == "__main__":
    write_comparison(example_comparison(), Path(sys.argv[1]))
