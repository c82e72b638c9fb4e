"""A small invented result with four seconds, two partitions and two late events, and run folders with it."""

from pathlib import Path
from typing import Any

import msgspec

from report.result import (
    Breakdown,
    Breakdowns,
    CauseOfLateness,
    Cost,
    Distribution,
    Effects,
    HeatMap,
    Integrity,
    LateEpisode,
    Lateness,
    PlanDecision,
    Provenance,
    RebalanceRecord,
    Rebalances,
    Result,
    Series,
    Stage,
    StartupTimes,
    Tail,
    TopicRecords,
)
from report.run_info import RunInfo

TIMES: dict[str, float | None] = {"p50_s": 0.02, "p99_s": 0.31, "p999_s": 0.62, "max_s": 0.62}


def small_result(**changes: Any) -> Result:
    """Return the result, with `changes`."""
    return msgspec.structs.replace(_result(), **changes)


def small_run(
    folder: Path, *, settings: dict[str, Any] | None = None, world: str = "simulated", **changes: Any
) -> Path:
    """Write run.json and result.json of a run with the name of its folder. changes: fields of the result."""
    folder.mkdir(parents=True)
    result = small_result(run=folder.name, **changes)
    result.save(folder)
    scenario: dict[str, Any] = {
        "name": result.scenario,
        "seed": result.seed,
        "duration_s": 4,
        "load": {"workload": "w1", "spacing": "burst", "split": "even"},
        "payment": {"partitions": 2, "rebalance_protocol": "incremental"},
        "target": {"latency_target_s": 0.5, "percentile": 0.999},
        "autoscaler": {"policy": result.policy},
        "simulation": {"startup_s": 0.0},
    }
    for key, value in (settings or {}).items():
        section, _, name = key.partition(".")
        scenario = scenario | ({section: scenario.get(section, {}) | {name: value}} if name else {section: value})
    RunInfo(
        run=folder.name, scenario=scenario, policy=result.policy, seed=result.seed, topology="payment-only",
        world=world,  # type: ignore[arg-type]
        bootstrap_servers="", client_properties="", payment_partitions=2, latency_target_s=0.5, percentile=0.999,
        duration_s=4.0, started_us=0,
    ).save(folder)  # fmt: skip
    return folder


def _result() -> Result:
    return Result(
        run="small", scenario="w1", policy="tail-aware", seed=1, topology="payment-only", payment_partitions=2,
        latency_target_s=0.5, percentile=0.999, duration_s=4.0,
        verdict="SLO not met: 98 % of 100 events were done within 500 ms.", valid=True, problems=(), events=100,
        in_sla=0.98,
        **TIMES,  # type: ignore[arg-type]
        replica_minutes=0.1, scale_ups=1, scale_downs=0, reassignments=0, moved_partitions=1, lost=0, refused=0,
        dead_letters=0, duplicates=0, order_violations=0, lateness=Lateness(p50_s=0.0, p99_s=0.0, max_s=0.0),
        effects=Effects(orders=100, exactly_once=100, missing=0, doubled=0),
        topics=(TopicRecords(topic="payments.settled", records=100, duplicates=0, differing=0),),
        stages=(Stage(stage="sla", events=100, p90_s=0.1, p95_s=0.2, p9999_s=0.62, **TIMES),),  # type: ignore[arg-type]
        distribution=Distribution(share=(0.5, 1.0), latency_s=(0.02, 0.63)),
        series=Series(
            arrivals=(30, 40, 30, 0), done=(30, 36, 34, 0), p50_s=(0.02, 0.02, 0.02, None),
            p99_s=(0.1, 0.62, 0.3, None), max_s=(0.1, 0.62, 0.31, None), requested_replicas=(1, 1, 2, 2),
            ready_replicas=(1, 1, 2, 2), lag=(0, None, 4, 0),
        ),
        decisions=(
            PlanDecision(at_s=-0.5, epoch=1, action="start", replicas=1, moved=0, reason="first plan"),
            PlanDecision(
                at_s=1.1, epoch=2, action="up", replicas=2, moved=1, reason="40 events/s | more than 1 serves"
            ),
        ),
        failures=(),
        breakdowns=Breakdowns(
            partitions=(
                Breakdown(name="0", events=50, late=2, **TIMES),  # type: ignore[arg-type]
                Breakdown(name="1", events=50, late=0, p50_s=0.01, p99_s=0.05, p999_s=0.06, max_s=0.06),
            ),
        ),
        tail=Tail(
            late=2, causes=(CauseOfLateness(cause="burst", events=2, share=1.0, worst_s=0.62),),
            episodes=(
                LateEpisode(
                    cause="burst", partition=0, replica="payment-0", epoch=1, from_s=1.0, until_s=1.0, events=2,
                    worst_s=0.62, why="40 events arrived at once.",
                ),
            ),
            by_second={"burst": (0, 2, 0, 0)},
        ),
        heat=HeatMap(cell_s=2.0, partitions=(0, 1), max_s=((0.62, 0.31), (0.06, None))),
        cost=Cost(
            requested_replica_minutes=0.1, ready_replica_minutes=0.1, packing_replica_minutes=0.08,
            over_packing=0.25, moved_partitions=1, rebalance_score=0.2, largest_up=1,
            largest_down=0,
        ),
        integrity=Integrity(
            lost=0, duplicates=0, order_violations_partition=0, order_violations_key=0,
            clock_skew={"queueing": 1, "serving": 0}, offset_gaps=0, future=0,
            suspect=("1 event was received before it was sent",),
        ),
        rebalances=Rebalances(
            rebalance_protocol="incremental",
            records=(RebalanceRecord(at_s=1.16, kind="plan", members=2, moved=1, pause_s=0.031, plan_to_ready_s=0.06),),
        ),
        starts=StartupTimes(replicas=2, p50_s=1.5, p99_s=2.1, max_s=2.1),
        provenance=Provenance(
            command="tailpack simulate w1 --out small", commit="0123abc", machine="2 cores",
            versions={"python": "3.11"}, started_us=0, peak_memory_mib=None,
        ),
    )  # fmt: skip
