"""A finished live run, simulated again from its own events and the times that it shows, next to what happened.

The times are the service rate μ, the pause of a partition that moves, the start-up of a replica, and when ticks are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from bench import BenchError
from bench.scenario import SIMULATION, Scenario, load_scenario, scenario_names
from bench.sections import OPTIONS, SECTIONS, STAGES
from bench.simulation.build import delivery_of, settings_of
from bench.simulation.run import RANKS, SimulationResult, percentile_s, policy_of, run_scenario
from bench.simulation.sent import Sent
from contracts.delivery import OUR_DELIVERIES, Delivery
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.validation import InvalidSettingsError
from loadgen.schedule import SECOND_US, Spacing, Split
from report import ReportError
from report.measures import in_sla_share, percentile_us, replica_minutes
from report.result import RESULT_FILE, Otherwise, Result
from report.run_info import JOURNAL, RUN_FILE, RunInfo
from report.stored import stored_events, stored_journal
from report.table import NONE, Table, coalesce

Times = NDArray[np.int64]
BASE: Final = "w1"
"""Scenario under a run whose own is not delivered: the run's values replace all of it."""
IN_SLA_POINTS: Final = 0.5
"""Percentage points by which the shares may differ for live to equal simulated."""
REPLICA_MINUTES_SHARE: Final = 0.03
"""Likewise, as a share of the live replica-minutes."""
COUNTS: Final = ("scale_ups", "scale_downs", "reassignments", "moved_partitions")
OTHERS: Final = ("overprovisioned", "keda-hpa", "algorithm-2")
"""Fixed at the peak, Kubernetes' way, and the published policy that plans for the lag."""
MAX_EVENTS: Final = 3_000_000
"""Above it, other policies are not tried for a report."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Every event that was finished, in the order of offsets, partition by partition. µs since second 0."""

    intended_us: Times
    handed_us: Times
    """When it was given to the broker for Payment."""
    received_us: Times
    """When a replica had it; the comparators begin to serve it then."""
    done_us: Times
    partition: NDArray[np.int32]
    replica: NDArray[np.int64]
    """A number for each name."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """What a finished run left in its folder."""

    info: RunInfo
    result: Result
    served: Served
    journal: tuple[JournalEntry, ...]
    """In order of time; µs since the epoch."""

    @property
    def started_us(self) -> int:
        """Epoch µs of second 0."""
        return self.result.provenance.started_us

    @property
    def ended_us(self) -> int:
        """Epoch µs at which the workload ended."""
        return self.started_us + round(self.info.duration_s * 1e6)

    @property
    def ticks(self) -> list[TickRecord]:
        """Ticks during the workload that saw the group."""
        found = (entry for entry in self.journal if isinstance(entry, TickRecord) and entry.partitions)
        return [tick for tick in found if self.started_us <= tick.at_us < self.ended_us]

    @property
    def plans(self) -> list[PlanWritten]:
        """All plans."""
        return [entry for entry in self.journal if isinstance(entry, PlanWritten)]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one run shows. None: it had nothing to measure it by."""

    service_rate: float
    """μ in events/s as the autoscaler had learned it: the median over its ticks."""
    pause_s: float | None
    """Of a partition that moved while events waited in it: from the last one done at its old owner until the next one
    was at the new one. Median."""
    pauses: int
    """Number of such moves."""
    startup_s: float | None
    """From the request of a replica until it was ready: median."""
    tick_offset_s: float
    """When ticks read the offsets, after whole decision intervals: median."""
    initial_replicas: int
    """In the plan in force at second 0."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One side. Latencies in seconds, nearest rank."""

    events: int
    in_sla: float
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float
    replica_minutes: float
    scale_ups: int
    scale_downs: int
    reassignments: int
    moved_partitions: int | None
    """None where the group places its partitions itself: the live journal does not know."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A run, live and simulated."""

    run: str
    scenario: str
    policy: str
    """Of the simulated side."""
    live_policy: str
    latency_target_s: float
    measured: Measured
    live: Figures
    simulated: Figures
    differences: dict[str, Any]
    """Simulated minus live: in_sla_points (percentage points), replica_minutes_share (of the live ones), the latencies
    in seconds, the counts; None where live is unknown."""
    within: dict[str, bool]
    """Whether in_sla and replica_minutes differ by at most `IN_SLA_POINTS` and `REPLICA_MINUTES_SHARE`."""


def replay(folder: Path, changes: Mapping[str, Any] | None = None) -> Replayed:
    """Simulate the run in `folder` again.

    changes: dotted key → value over the run's settings and what it shows.
    Raises InvalidSettingsError for a folder or a run that cannot be replayed, and for wrong changes.
    """
    recorded = read_run(folder)
    try:
        measured = measure(recorded)
        live = _live_figures(recorded)
    except ValueError as wrong:
        raise InvalidSettingsError([f"{folder}: {wrong}"]) from wrong
    scenario = scenario_of(recorded.info, measured, changes or {})
    run, latency_us = simulate_again(recorded, scenario)
    again = _figures(latency_us, recorded, replica_minutes(run.requested, 0, recorded.info.duration_s), run)
    points = 100 * (again.in_sla - live.in_sla)
    more = again.replica_minutes / live.replica_minutes - 1
    pairs = {name: (getattr(again, name), getattr(live, name)) for name in (*RANKS, *COUNTS)}
    apart = {name: None if own is None else round(other - own, 6) for name, (other, own) in pairs.items()}
    return Replayed(
        run=recorded.info.run,
        scenario=scenario.name,
        policy=run.policy,
        live_policy=recorded.info.policy,
        latency_target_s=recorded.info.latency_target_s,
        measured=measured,
        live=live,
        simulated=again,
        differences={"in_sla_points": points, "replica_minutes_share": more, **apart},
        within={"in_sla": abs(points) <= IN_SLA_POINTS, "replica_minutes": abs(more) <= REPLICA_MINUTES_SHARE},
    )


def otherwise(folder: Path) -> tuple[Otherwise, ...]:
    """Return the cost and the share in time of the run's events under `OTHERS`. Raises BenchError."""
    try:
        info = RunInfo.load(folder)
        if info.events_scheduled > MAX_EVENTS:
            raise BenchError(f"{info.events_scheduled:,} events would take too long; {MAX_EVENTS:,} at most")
        return tuple(_under(policy, folder, info) for policy in OTHERS if policy != info.policy)
    except (InvalidSettingsError, OSError, ValueError, msgspec.DecodeError) as wrong:
        raise BenchError(str(wrong)) from wrong


def _under(policy: str, folder: Path, info: RunInfo) -> Otherwise:
    change = {"autoscaler.policy": policy}
    figures: Figures | SimulationResult
    if info.world == "simulated":
        figures = run_scenario(scenario_of(info, None, change), keep_events=False)[1]
        if figures.events != info.events_scheduled:
            raise ValueError(f"{info.run}: its events are from a trace that its run.json does not contain")
    else:
        figures = replay(folder, change).simulated
    return Otherwise(policy=policy, in_sla=figures.in_sla, replica_minutes=figures.replica_minutes)


def read_run(folder: Path) -> Recorded:
    """Read the folder of a run that has its report. Raises InvalidSettingsError where something is missing."""
    info = _record(folder, RUN_FILE, RunInfo, "not the folder of a run")
    if info.interrupted:
        raise InvalidSettingsError([f"{folder}: the run was interrupted: what it shows is not a whole run"])
    result = _record(folder, RESULT_FILE, Result, "the run has no report yet: tailpack report makes it")
    try:
        (events,), entries = stored_events(folder).pieces(lambda rows: rows), stored_journal(folder)
    except ReportError as wrong:
        raise InvalidSettingsError([f"{folder}: {wrong}"]) from wrong
    if not len((served := _served(events, result.provenance.started_us)).done_us):
        raise InvalidSettingsError([f"{folder}: no event of this run was finished"])
    if not entries:
        raise InvalidSettingsError([f"{folder}: {JOURNAL} is empty: nothing is known of the autoscaler"])
    return Recorded(info, result, served, tuple(sorted(entries, key=lambda entry: entry.at_us)))


def _record(folder: Path, name: str, into: type[Any], absent: str) -> Any:
    if not folder.is_dir():
        raise InvalidSettingsError([f"{folder}: no such folder"])
    try:
        return into.load(folder)
    except FileNotFoundError as missing:
        raise InvalidSettingsError([f"{folder}: it holds no {name}; {absent}"]) from missing
    except (OSError, msgspec.DecodeError) as wrong:
        raise InvalidSettingsError([f"{folder / name}: cannot be read ({wrong})"]) from wrong


def _served(events: Table, started_us: int) -> Served:
    found = events.plus(handed_us=coalesce(events["accepted_us"], events["placed_us"]))
    found = found.where((events["done_us"] != NONE) & (events["received_us"] != NONE))
    found = found.where(np.lexsort((found["offset"], found["partition"])))
    return Served(
        **{name: found[name] - started_us for name in ("intended_us", "handed_us", "received_us", "done_us")},
        partition=found["partition"].astype(np.int32),
        replica=np.unique(found["replica"], return_inverse=True)[1].astype(np.int64),
    )


def measure(recorded: Recorded) -> Measured:
    """Return what `recorded` shows. Raises ValueError for a run in which no tick saw the group."""
    ticks = recorded.ticks
    if not ticks:
        raise ValueError("no tick of the autoscaler saw the group")
    interval_us = round(float(recorded.info.section("autoscaler").get("decision_interval_s", 1.0)) * 1e6)
    pauses_us, startups_us = _pauses_us(recorded), _startups_us(recorded)
    before = [plan for plan in recorded.plans if plan.at_us <= recorded.started_us]
    return Measured(
        service_rate=float(np.median([tick.service_rate for tick in ticks])),
        pause_s=percentile_s(pauses_us, 0.5),
        pauses=len(pauses_us),
        startup_s=percentile_s(startups_us, 0.5),
        tick_offset_s=float(np.median([(tick.at_us - recorded.started_us) % interval_us for tick in ticks])) / 1e6,
        initial_replicas=len(before[-1].replicas) if before else ticks[0].requested_replicas,
    )


def _pauses_us(recorded: Recorded) -> Times:
    """Return the pauses of moved partitions in which events were waiting.

    The old owner must have finished an event after the plan was written: otherwise it was busy with other partitions.
    None under a comparator, whose events count as received when their service begins.
    """
    written_us = np.array([plan.at_us - recorded.started_us for plan in recorded.plans], dtype=np.int64)
    if recorded.info.section("payment").get("runtime") or not len(written_us):
        return np.empty(0, np.int64)
    served = recorded.served
    moved = np.flatnonzero((np.diff(served.partition) == 0) & (np.diff(served.replica) != 0))
    free_us, next_us = served.done_us[moved], served.received_us[moved + 1]
    plan = np.maximum(0, np.searchsorted(written_us, next_us) - 1)
    seen = (served.handed_us[moved + 1] < free_us) & (written_us[plan] < free_us) & (free_us < next_us)
    return (next_us - free_us)[seen]


def _startups_us(recorded: Recorded) -> Times:
    """Return requested → ready of each replica that was requested during the workload."""
    requested: dict[str, int] = {}
    found = []
    for entry in recorded.journal:
        if isinstance(entry, ReplicaChanged) and entry.change is ReplicaChange.REQUESTED:
            requested[entry.replica] = entry.at_us
        elif isinstance(entry, ReplicaChanged) and entry.change is ReplicaChange.READY and entry.replica in requested:
            found.append((requested.pop(entry.replica), entry.at_us))
    return np.array([until - since for since, until in found if since >= recorded.started_us], dtype=np.int64)


def scenario_of(info: RunInfo, measured: Measured | None, changes: Mapping[str, Any]) -> Scenario:
    """Return the run's scenario: measured values over its settings, `changes` over both.

    measured: None for a simulated run, whose settings are its times.
    Raises InvalidSettingsError for what the simulator does not know, and for wrong changes.
    """
    name = str(info.scenario.get("name", ""))
    runtime = info.section("payment").get("runtime", "")
    if runtime and runtime not in list(Delivery):
        known = ", ".join(Delivery)
        raise InvalidSettingsError([f"{info.run}: runtime {runtime!r} has no simulation; known are {known}"])
    other_policy = any(changes.get(key, info.policy) != info.policy for key in ("autoscaler.policy", "policy"))
    values = {key: value for key, value in _flat(info.scenario) if not (other_policy and key.startswith(f"{OPTIONS}."))}
    if measured is not None:
        values |= {
            "payment.service_time_s": 1 / measured.service_rate,
            "autoscaler.initial_replicas": measured.initial_replicas,
            "autoscaler.tick_offset_s": measured.tick_offset_s,
        }
        measured_s = {"simulation.startup_s": measured.startup_s, "simulation.pause_s": measured.pause_s}
        values |= {key: value for key, value in measured_s.items() if value is not None}
    return load_scenario(name if name in scenario_names() else BASE, values | dict(changes))


def _flat(recorded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    nested = [*(name for name in (*SECTIONS, OPTIONS) if name and name != SIMULATION), SIMULATION]
    yield from ((key, value) for key, value in recorded.items() if key not in (*nested, STAGES))  # a run has none
    for section in nested:
        yield from ((f"{section}.{key}", value) for key, value in recorded.get(section, {}).items())


def simulate_again(recorded: Recorded, scenario: Scenario) -> tuple[Run, Times]:
    """Return the simulated run, and the latency of each event from its intended time, µs."""
    served, partitions = recorded.served, scenario.payment.partitions
    at_us = np.maximum(0, served.handed_us)
    order = np.argsort(at_us, kind="stable")
    second = at_us // SECOND_US
    seconds = max(int(recorded.info.duration_s), int(second.max()) + 1)
    counts = np.bincount(second * partitions + served.partition, minlength=seconds * partitions)
    spacing = Spacing(recorded.info.section("load").get("spacing", Spacing.BURST))
    table = Sent(counts.reshape(seconds, partitions), spacing, Split.TABLE, partitions, recorded.info.seed)
    arrivals = Arrivals(at_us[order], served.partition[order])
    workload = Workload.whole(arrivals, partitions=partitions, duration_s=float(seconds))
    settings = settings_of(scenario)
    if delivery_of(scenario) in OUR_DELIVERIES:  # replicas read plans themselves: no heartbeat has to bring them
        pause_s = settings.delivery.pause_s
        settings = replace(settings, delivery=replace(settings.delivery, heartbeat_s=0.0, rebalance_time_s=pause_s))
    run = simulate(workload, policy_of(scenario, table), settings, keep_events=True)
    latency_us = np.empty(len(at_us), np.int64)
    latency_us[order] = run.latency_us + (at_us - served.intended_us)[order]
    return run, latency_us


def _live_figures(recorded: Recorded) -> Figures:
    if recorded.result.replica_minutes is None:
        raise ValueError("its report knows no replica-minutes")
    return _figures(recorded.served.done_us - recorded.served.intended_us, recorded, recorded.result.replica_minutes)


def _figures(latency_us: Times, recorded: Recorded, minutes: float, run: Run | None = None) -> Figures:
    """Return the figures of one side; `run`: the simulated one."""
    result, within_s = recorded.result, recorded.info.latency_target_s
    plans = [plan for plan in recorded.plans if recorded.started_us <= plan.at_us < recorded.ended_us]
    taken: list[str] = [str(one.action) for one in (plans if run is None else run.changes)]
    known = all(plan.assignment is not None for plan in plans)
    moved = (result.moved_partitions if known else None) if run is None else sum(one.moved for one in run.changes)
    return Figures(
        events=len(latency_us),
        in_sla=result.in_sla if run is None else in_sla_share(latency_us, within_s),
        **{name: percentile_us(latency_us, percentile) / 1e6 for name, percentile in RANKS.items()},
        replica_minutes=minutes,
        scale_ups=taken.count(Action.UP),
        scale_downs=taken.count(Action.DOWN),
        reassignments=taken.count(Action.REASSIGN),
        moved_partitions=moved,
    )
