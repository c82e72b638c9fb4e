"""Make folders of live runs without running them: a simulation writes the files that live processes would write."""

from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from example_report import example

from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario, load_scenario
from bench.simulation.run import policy_of
from bench.simulation.sent_events import build_events, replica_minutes, settings_of
from contracts.journal import PlanWritten
from report.measures import in_sla_share
from report.run_info import RunInfo
from report.stored import BOOLEAN_COLUMNS, INTEGER_COLUMNS, TEXT_COLUMNS

STARTED_US = 1_795_265_911_000_000
PAUSE_US = 30_000
RUN = "w1-20261121-125818"


def known_world(**changes: object) -> tuple[Scenario, Run]:
    """Return a scenario with 300 s of w1 and known times. A replica takes 0.4 s to start."""
    known = {"duration_s": 300, "split": "random", "startup_s": 0.4, "tick_offset_s": 0.104, "pause_s": PAUSE_US / 1e6}
    scenario = load_scenario("w1", {"policy": "algorithm-2", **known, **changes})
    sent = build_events(scenario)
    chunks = [
        Arrivals(_one_by_one(chunk.offset_us) + 7_000, chunk.partition[np.lexsort((chunk.partition, chunk.offset_us))])
        for chunk in sent.chunks()
    ]
    workload = Workload(sent.partitions, sent.duration_s, chunks)
    return scenario, simulate(workload, policy_of(scenario, sent), settings_of(scenario))


def write_folder(folder: Path, scenario: Scenario, run: Run, **fields: object) -> Path:
    """Write run.json, result.json and both Parquet folders. Events are sent 7 ms after their scheduled time."""
    folder.mkdir(parents=True, exist_ok=True)
    info = RunInfo(
        run=RUN, scenario=msgspec.to_builtins(scenario), policy=run.policy, seed=scenario.seed,
        topology="payment-only", bootstrap_servers="", client_properties="",
        payment_partitions=scenario.payment.partitions, latency_target_s=scenario.target.latency_target_s,
        percentile=scenario.target.percentile, duration_s=scenario.duration_s, started_us=STARTED_US,
        events_scheduled=len(run.latency_us),
    )  # fmt: skip
    msgspec.structs.replace(info, **fields).save(folder)
    _result(scenario, run).save(folder)
    unknown = dict.fromkeys((*INTEGER_COLUMNS, *BOOLEAN_COLUMNS, *TEXT_COLUMNS), [None] * len(run.events))
    write_columns(folder / "events.parquet", unknown | _events(run))
    lines = [msgspec.json.encode(entry).decode() for entry in run.entries(STARTED_US)]
    write_columns(folder / "journal.parquet", {"position": range(len(lines)), "entry": lines})
    return folder


def write_columns(folder: Path, columns: dict[str, object]) -> None:
    """Write a Parquet folder of two parts, as Spark does."""
    import pyarrow
    from pyarrow import parquet

    folder.mkdir(exist_ok=True)
    table = pyarrow.table(columns)
    half = len(table) // 2
    parquet.write_table(table.slice(half), folder / "part-00000.parquet")  # events lie there in no order
    parquet.write_table(table.slice(0, half), folder / "part-00001.parquet")
    (folder / "_SUCCESS").touch()


def _one_by_one(offset_us: np.ndarray) -> np.ndarray:
    """Return times of a burst that are 10 µs apart, because a generator cannot send two events at the same time.

    They are sorted by partition, as replicas serve events with equal timestamps.
    """
    return offset_us + 10 * (np.arange(len(offset_us)) - np.searchsorted(offset_us, offset_us))


def _events(run: Run) -> dict[str, object]:
    events = run.events
    order = np.argsort(events.partition, kind="stable")
    counts = np.bincount(events.partition)
    offset = np.empty(len(events), np.int64)
    offset[order] = np.concatenate([np.arange(count) for count in counts])
    attached_us = np.zeros(len(events), np.int64)
    for partition in range(len(counts)):
        own = order[events.partition[order] == partition]
        for before, after in pairwise(own):
            moved = events.replica[before] != events.replica[after]
            attached_us[after] = events.done_us[before] + PAUSE_US if moved else attached_us[before]
    return {
        "intended_us": STARTED_US + events.intended_us - 7_000,
        "placed_us": STARTED_US + events.intended_us - 7_000,
        "accepted_us": [None] * len(events),
        "received_us": STARTED_US + np.maximum(events.intended_us, attached_us),
        "done_us": STARTED_US + events.done_us,
        "partition": events.partition,
        "offset": offset,
        "replica": np.array(run.replica_names)[events.replica],
    }


def _result(scenario: Scenario, run: Run):
    made = example()
    plans = [plan for plan in run.plans if isinstance(plan, PlanWritten)][1:]
    taken = [plan.action for plan in plans]
    return msgspec.structs.replace(
        made,
        run=RUN,
        policy=run.policy,
        events=len(run.latency_us),
        in_sla=in_sla_share(run.latency_us + 7_000, scenario.target.latency_target_s),
        replica_minutes=replica_minutes(run.requested, 0, scenario.duration_s),
        scale_ups=taken.count("up"),
        scale_downs=taken.count("down"),
        reassignments=taken.count("reassign"),
        moved_partitions=sum(plan.moved for plan in plans),
        provenance=msgspec.structs.replace(made.provenance, started_us=STARTED_US),
    )
