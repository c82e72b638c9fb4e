"""A run of any size on disk, to be reported on: W1 again and again through the simulator, written in parts.

Ten replicas on average share 24 partitions; a stage of ten minutes is three waves of bursts, in which plans move
partitions, replicas start, and one dies. Between two stages nothing arrives: everybody leaves, a fresh group begins.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from autoscaler.jit import load_compiler
from autoscaler.simulator.run import Run, simulate
from bench.report_speed.files import Writers
from bench.scenario import Scenario, load_scenario
from bench.simulation.build import policy_of, settings_of
from bench.simulation.folder import EVENT_TYPES
from bench.simulation.sent import sent_by
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from loadgen.curves import IntArray
from loadgen.papers import w1
from loadgen.trace import Trace
from report.run_info import RunInfo

SECOND_US: Final = 1_000_000
STARTED_US: Final = 1_700_000_000 * SECOND_US
TIMES_W1: Final = 18
"""How many times the events of W1 arrive, at a fifth of its service time."""
PARTITIONS: Final = 24
CUSTOMERS: Final = 5_000
"""Of each partition."""
PLACED_LATE_US: Final = 150.0
"""Mean time from the intended to the real sending of an event."""
NOTED_LATE_US: Final = 400
"""A completion is noted up to so much later than it is simulated, less than a service takes: else there were few
different latencies, unlike in any real run."""
CHANGES: Final = {
    "payment.partitions": PARTITIONS,
    "payment.service_time_s": 0.001,
    "simulation.split": "random",
    "simulation.startup_s": 1.5,
    "simulation.failures_s": [200],  # the replica that has most to do; nobody is told until its session expires
    "simulation.failures_known": False,
    "payment.session_s": 3,
    "autoscaler.initial_replicas": 4,
}
GONE: Final = frozenset({ReplicaChange.LEFT, ReplicaChange.DIED})


@dataclass(frozen=True, slots=True)
class Joint:
    """Where a stage is put behind those before it."""

    began_us: int = STARTED_US
    events: int = 0
    epoch: int = 0
    tick: int = 0
    offsets: tuple[int, ...] = (0,) * PARTITIONS


def make_up(folder: Path, events: int, seed: int, passed: Callable[[int], None] = lambda _: None) -> RunInfo:
    """Write a run of exactly `events` events into `folder`: run.json, events.parquet and journal.parquet.

    Memory is that of one stage, two million events. passed: told how many more events are written. Raises OSError.
    """
    load_compiler()
    joint = Joint()
    with Writers(folder) as writers:
        for number, counts in enumerate(stages(events)):
            joint = _write_stage(writers, joint, _scenario(seed + number), counts)
            passed(int(counts.sum()))
    info = _info(_scenario(seed), events, joint.began_us)
    info.save(folder)
    return info


def stages(events: int) -> Iterator[IntArray]:
    """Yield events of each second, stage by stage, in all as many as asked for; the last stage ends early."""
    stage = TIMES_W1 * w1()
    while events > 0:
        counts = np.diff(np.minimum(np.cumsum(stage), events), prepend=0)
        events -= int(counts.sum())
        yield counts[: int(np.flatnonzero(counts)[-1]) + 1] if not events else counts


def event_columns(run: Run, joint: Joint, ranks: NDArray[np.int64], chance: np.random.Generator) -> dict[str, Any]:
    """Return column → values of a stage, by the names of EVENT_TYPES, and `customer_hash`. ranks: their offsets."""
    events, count, began_us = run.events, len(run.events), joint.began_us
    sent_us = events.intended_us + chance.exponential(PLACED_LATE_US, count).astype(np.int64)
    customers = chance.integers(0, CUSTOMERS, count) * PARTITIONS + events.partition
    numbers = pa.array(np.arange(joint.events, joint.events + count)).cast(pa.string())
    epochs = np.searchsorted([plan.at_us for plan in run.plans], events.started_us, side="right")
    known: dict[str, Any] = {
        "event_id": pa.compute.binary_join_element_wise("event", numbers, "-"),
        "intended_us": began_us + events.intended_us,
        "placed_us": began_us + np.minimum(sent_us, events.started_us),
        "received_us": began_us + events.started_us,
        "done_us": began_us + events.done_us + chance.integers(0, NOTED_LATE_US, count),
        "partition": events.partition,
        "offset": ranks,
        "replica": pa.array(run.replica_names).take(pa.array(events.replica)),
        "epoch": joint.epoch + epochs,
        "accepted": np.ones(count, bool),
        "requested_records": np.ones(count, np.int64),
        "settled_records": np.ones(count, np.int64),
    }
    unknown = {
        "int64": np.zeros(count, np.int64),
        "bool": np.zeros(count, bool),
    }
    never = pa.nulls(count, pa.int64())
    times = dict.fromkeys(("accepted_us", "shipped_us", "notified_us"), never)
    rest = {name: unknown[kind] for name, kind in EVENT_TYPES.items() if name not in known | times}
    return known | times | rest | {"customer_hash": _scattered(customers)}


def entries(run: Run, joint: Joint, ended_us: int) -> Iterator[JournalEntry]:
    """Yield the journal of a stage, numbered after those before it; at its end, who is there leaves."""
    here: dict[str, ReplicaChange] = {}
    for entry in run.entries(joint.began_us):
        change: dict[str, int] = {}
        if isinstance(entry, PlanWritten | TickRecord):
            change["epoch"] = entry.epoch + joint.epoch
        if isinstance(entry, TickRecord):
            change["tick"] = entry.tick + joint.tick
        if isinstance(entry, ReplicaChanged):
            here[entry.replica] = entry.change
        if isinstance(entry, PlanWritten) and entry.at_us == joint.began_us:
            change["at_us"] = entry.at_us - 1  # a group is there before its load
        yield msgspec.structs.replace(entry, **change)
    for replica in (name for name, change in here.items() if change not in GONE):
        yield ReplicaChanged(at_us=ended_us - 1, replica=replica, change=ReplicaChange.LEFT)


def _write_stage(writers: Writers, joint: Joint, scenario: Scenario, counts: IntArray) -> Joint:
    """Simulate a stage and write it; return where the next one is put."""
    sent = sent_by(scenario, Trace("stage", counts))
    run = simulate(sent.workload(), policy_of(scenario, sent), settings_of(scenario))
    offsets, ranks = _offsets(run.events.partition, joint.offsets)
    writers.events(event_columns(run, joint, ranks, np.random.default_rng(scenario.seed)))
    last_us = max(
        run.drained_us + NOTED_LATE_US, len(counts) * SECOND_US - 1, *(one.at_us for one in run.replica_changes)
    )
    ended_us = joint.began_us + (last_us // SECOND_US + 1) * SECOND_US
    ticks = writers.journal(entries(run, joint, ended_us))
    return Joint(ended_us, joint.events + sent.events, joint.epoch + len(run.plans), ticks, offsets)


def _scenario(seed: int) -> Scenario:
    return load_scenario("w1", CHANGES | {"seed": seed})


def _offsets(partition: NDArray[np.int32], first: tuple[int, ...]) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Return the next offset of each partition, and the offset of each event."""
    order = np.argsort(partition, kind="stable")
    counts = np.bincount(partition, minlength=PARTITIONS)
    ranks = np.empty(len(partition), np.int64)
    ranks[order] = np.arange(len(partition)) - np.repeat(np.cumsum(counts) - counts - np.array(first), counts)
    return tuple((counts + first).tolist()), ranks


def _scattered(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a hash: an odd factor is one-to-one modulo 2⁶⁴."""
    return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def _info(scenario: Scenario, events: int, ended_us: int) -> RunInfo:
    duration_s = (ended_us - STARTED_US) / SECOND_US
    return RunInfo(
        run=f"made-up-{events}",
        scenario=msgspec.to_builtins(scenario) | {"name": "w1-again-and-again", "duration_s": int(duration_s)},
        policy=scenario.autoscaler.policy,
        seed=scenario.seed,
        topology="payment-only",
        world="simulated",
        bootstrap_servers="simulated",
        client_properties="",
        payment_partitions=PARTITIONS,
        latency_target_s=scenario.target.latency_target_s,
        percentile=scenario.target.percentile,
        duration_s=duration_s,
        started_us=STARTED_US,
        drained_us=ended_us,
        events_scheduled=events,
    )
