"""`python tests/support/example_report.py report.html`: write the page of an invented result.

Its run lasts two minutes, with two surges and at most three replicas, of which one is killed.
"""

import sys
from pathlib import Path

import msgspec
import numpy as np
from example_parts import breakdowns, cost, heat, integrity, rebalances, tail

from report.page.page import write
from report.result import (
    Distribution,
    Effects,
    Failure,
    Lateness,
    NoChange,
    PlanDecision,
    Provenance,
    Result,
    Series,
    Stage,
    TopicRecords,
)
from report.wording import plural

SECONDS = 124


def example() -> Result:
    """Return the invented result."""
    chance = np.random.default_rng(7)
    second = np.arange(SECONDS)
    arrivals = np.where(second < 120, 60 + 130 * np.exp(-(((second - 45) % 60 - 15) ** 2) / 90), 0).astype(int)
    requested = np.select([arrivals > 165, arrivals > 95], [3, 2], 1)
    lag = np.where(arrivals > 0, chance.integers(0, 9, SECONDS) + 60 * np.exp(-((second - 62) ** 2) / 2), 0).astype(int)
    p99 = 0.018 + 0.004 * chance.random(SECONDS) + 0.3 * np.exp(-((second - 62) ** 2) / 2)
    latency = np.sort(
        np.concatenate([chance.lognormal(-4.3, 0.3, 10_200), np.geomspace(0.04, 0.71, 34), [0.55] * 3, [0.3] * 3])
    )
    edges = np.geomspace(0.004, 0.72, 110)
    share = np.searchsorted(latency, edges, side="right") / len(latency)
    made = [
        PlanDecision(
            at_s=float(k) + 0.1,
            epoch=int(k),
            action="up" if requested[k] > requested[k - 1] else "down",
            replicas=int(requested[k]),
            moved=2,
            reason=_reason(int(requested[k - 1]), int(requested[k]), int(arrivals[k])),
        )
        for k in range(1, SECONDS)
        if requested[k] != requested[k - 1]
    ]
    nothing = (None,) * 4
    return Result(
        run="demo-20260105-101500", scenario="demo", policy="algorithm-2", seed=1, topology="pipeline",
        payment_partitions=9, latency_target_s=0.5, percentile=0.999, duration_s=120.0,
        verdict="SLO met: 99.921 % of 10,240 events were done within 500 ms (target 99.9 %) "
        "for 3.00 replica-minutes; no event was lost, every order had each of its effects exactly once.",
        valid=True, problems=(), events=10_240, in_sla=1 - 8 / 10_240, p50_s=float(latency[5_120]), p99_s=0.0301,
        p999_s=0.4127, max_s=float(latency[-1]), replica_minutes=float(requested[:120].sum() / 60),
        scale_ups=sum(decision.action == "up" for decision in made),
        scale_downs=sum(decision.action == "down" for decision in made),
        reassignments=0, moved_partitions=2 * len(made), lost=0, refused=3, dead_letters=3, duplicates=14,
        order_violations=0, lateness=Lateness(p50_s=0.0004, p99_s=0.0031, max_s=0.0123),
        effects=Effects(orders=10_240, exactly_once=10_240, missing=0, doubled=0),
        topics=(
            TopicRecords(topic="orders.placed", records=10_243, duplicates=0, differing=0),
            TopicRecords(topic="payments.requested", records=10_240, duplicates=0, differing=0),
            TopicRecords(topic="payments.settled", records=10_254, duplicates=14, differing=0),
            TopicRecords(topic="shipments.scheduled", records=9_216, duplicates=0, differing=0),
            TopicRecords(topic="notifications.sent", records=10_240, duplicates=0, differing=0),
        ),
        stages=tuple(
            Stage(
                stage=name, events=10_240, p50_s=0.012 * scale, p90_s=0.019 * scale, p95_s=0.022 * scale,
                p99_s=0.0301 * scale, p999_s=0.4127 * scale, p9999_s=0.68 * scale, max_s=0.71 * scale,
            )
            for name, scale in (
                ("sla", 1.0),
                ("sending", 0.3),
                ("queueing", 0.9),
                ("serving", 0.4),
                ("end-to-end", 2.1),
            )
        ),
        distribution=Distribution(share=tuple(map(float, share)), latency_s=tuple(map(float, edges))),
        series=Series(
            arrivals=tuple(map(int, arrivals)), done=tuple(map(int, np.roll(arrivals, 0))),
            p50_s=(*map(float, p99[:120] / 2), *nothing), p99_s=(*map(float, p99[:120]), *nothing),
            max_s=(*map(float, p99[:120] * 1.6), *nothing), requested_replicas=tuple(map(int, requested)),
            ready_replicas=tuple(map(int, np.minimum(requested, np.roll(requested, 1)))), lag=tuple(map(int, lag)),
            packing_replicas=tuple(map(int, np.where(arrivals > 0, np.ceil(arrivals / 105), 0))),
        ),
        decisions=tuple(made),
        no_changes=(
            NoChange(at_s=7.1, ticks=20, reason="one replica is enough"),
            NoChange(at_s=60.1, ticks=1, reason="three replicas are enough"),
        ),
        failures=(Failure(at_s=61.2, replica="payment-1", change="died", detail="killed by signal 9"),),
        breakdowns=breakdowns(), tail=tail(SECONDS), heat=heat(SECONDS), cost=cost(), integrity=integrity(),
        rebalances=rebalances(),
        provenance=Provenance(
            command="tailpack run --scenario demo --policy algorithm-2 --set seed=1", commit="0123abc",
            machine="2 × made-up CPU, 8 GiB", versions={"python": "3.11", "kafka": "4.3.1", "pyspark": "4.0"},
            started_us=1_767_608_100_000_000, peak_memory_mib=2100.0,
        ),
    )  # fmt: skip


def _reason(before: int, after: int, arrival_rate: int) -> str:
    if after > before:
        return f"λ = {arrival_rate} events/s exceeds 0.9·μ of {plural(before, 'replica')} ({before * 178} events/s)"
    return f"λ = {arrival_rate} events/s fits {plural(after, 'replica')}"


def changed(**values: object) -> Result:
    """Return the invented result with other values."""
    return msgspec.structs.replace(example(), **values)


if __name__ == "__main__":
    write(example(), Path(sys.argv[1]))
