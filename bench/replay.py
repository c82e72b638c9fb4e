"""A finished live run, simulated again from its own events and the times that it shows, next to what happened.

The times are the service rate μ, the pause of a partition that moves, the start-up of a replica, and when ticks are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from bench import BenchError
from bench.matrix import flat
from bench.scenario import SIMULATION, Scenario, load_scenario, scenario_names
from bench.sections import OPTIONS, STAGES
from bench.simulation.run import RANKS, SimulationResult, analyse, percentile_s, policy_of, run_scenario
from bench.simulation.sent import Sent, protocol_of, settings_of
from contracts.journal import TickRecord
from contracts.rebalance_protocol import PLAN_PROTOCOLS, RebalanceProtocol
from contracts.validation import InvalidSettingsError
from loadgen.schedule import SECOND_US, Spacing, Split
from report import ReportError
from report.history import Journal, started_us
from report.measures import replica_minutes
from report.result import RESULT_FILE, OtherPolicy, Result
from report.run_info import EVENTS, RUN_FILE, RunInfo
from report.stored import load_events, load_journal
from report.table import NONE, Table, coalesce

Times = NDArray[np.int64]
BASE: Final = "w1"
"""Scenario under a run whose own is not delivered: the run's values replace all of it."""
IN_SLA_POINTS: Final = 0.5
"""Percentage points by which the shares may differ for live to equal simulated."""
REPLICA_MINUTES_SHARE: Final = 0.03
"""Likewise, as a share of the live replica-minutes."""
COUNTS: Final = ("scale_ups", "scale_downs", "reassignments", "moved_partitions")
FIGURES: Final = ("events", "in_sla", *RANKS, "replica_minutes", *COUNTS)
"""Figures by which both sides are compared, under the names of a report."""
OTHERS: Final = ("overprovisioned", "keda-hpa", "algorithm-2")
"""Fixed at the peak, Kubernetes' way, and the published policy that plans for the lag."""
MAX_EVENTS: Final = 3_000_000
"""Above it, other policies are not tried for a report."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The files of a finished run."""

    info: RunInfo
    result: Result
    served: Table
    """Every event that was finished, in the order of offsets, partition by partition; µs since second 0. `handed_us`:
    when it was given to the broker for Payment; comparators count an event as received when they begin to serve it."""
    journal: Journal
    """µs since the epoch."""

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
        found = (tick for tick in self.journal.ticks if tick.partitions)
        return [tick for tick in found if self.started_us <= tick.at_us < self.ended_us]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The times that one run shows. None: the run has nothing to measure them by."""

    service_rate: float
    """μ in events/s as the autoscaler had learned it: the median over its ticks."""
    pause_s: float | None
    """The median pause of a partition that moved while events waited in it: from the last event done at its old owner
    until the next event was at the new one."""
    pauses: int
    """Number of such moves."""
    startup_s: float | None
    """From the request of a replica until it was ready: median."""
    tick_offset_s: float
    """When ticks read the offsets, after whole decision intervals: median."""
    initial_replicas: int
    """In the plan in force at second 0."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A run, live and simulated."""

    run: str
    scenario: str
    policy: str
    """The policy of the simulated side."""
    live_policy: str
    latency_target_s: float
    measured: Measured
    live: dict[str, Any]
    """`FIGURES` as the report has them; moved_partitions is None where the group places its partitions itself: its
    journal does not know."""
    simulated: dict[str, Any]
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
    measured = measure(recorded)
    scenario = scenario_of(recorded.info, measured, changes or {})
    _, result = simulate_again(recorded, scenario)
    live, again = ({name: getattr(side, name) for name in FIGURES} for side in (recorded.result, result))
    during = (plan for plan in recorded.journal.plans if recorded.started_us <= plan.at_us < recorded.ended_us)
    if any(plan.assignment is None for plan in during):
        live["moved_partitions"] = None
    points = 100 * (again["in_sla"] - live["in_sla"])
    more = again["replica_minutes"] / live["replica_minutes"] - 1
    apart = {name: None if live[name] is None else round(again[name] - live[name], 6) for name in (*RANKS, *COUNTS)}
    return Replayed(
        run=recorded.info.run,
        scenario=scenario.name,
        policy=result.policy,
        live_policy=recorded.info.policy,
        latency_target_s=recorded.info.latency_target_s,
        measured=measured,
        live=live,
        simulated=again,
        differences={"in_sla_points": points, "replica_minutes_share": more, **apart},
        within={"in_sla": abs(points) <= IN_SLA_POINTS, "replica_minutes": abs(more) <= REPLICA_MINUTES_SHARE},
    )


def otherwise(folder: Path) -> tuple[OtherPolicy, ...]:
    """Return the cost and the share in time of the run's events under `OTHERS`. Raises BenchError."""
    try:
        info = RunInfo.load(folder)
        if info.events_scheduled > MAX_EVENTS:
            raise BenchError(f"{info.events_scheduled:,} events would take too long; {MAX_EVENTS:,} at most")
        return tuple(_under(policy, folder, info) for policy in OTHERS if policy != info.policy)
    except (InvalidSettingsError, OSError, ValueError, msgspec.DecodeError) as wrong:
        raise BenchError(str(wrong)) from wrong


def _under(policy: str, folder: Path, info: RunInfo) -> OtherPolicy:
    change = {"autoscaler.policy": policy}
    if info.world != "simulated":
        found = replay(folder, change).simulated
    else:
        result = run_scenario(scenario_of(info, None, change), keep_events=False)[1]
        if result.events != info.events_scheduled:
            raise ValueError(f"{info.run}: its events are from a trace that its run.json does not contain")
        found = msgspec.structs.asdict(result)
    return OtherPolicy(policy=policy, in_sla=found["in_sla"], replica_minutes=found["replica_minutes"])


def read_run(folder: Path) -> Recorded:
    """Read the folder of a run that has its report. Raises InvalidSettingsError where something is missing."""
    info = _record(folder, RUN_FILE, RunInfo, "not the folder of a run")
    result = _record(folder, RESULT_FILE, Result, "the run has no report yet: tailpack report makes it")
    try:
        (events,), journal = load_events(folder / EVENTS).pieces(lambda rows: rows), Journal(load_journal(folder))
    except ReportError as wrong:
        raise InvalidSettingsError([f"{folder}: {wrong}"]) from wrong
    recorded = Recorded(info, result, _served(events, result.provenance.started_us), journal)
    reasons = {
        "the run was interrupted: what it shows is not a whole run": info.interrupted,
        "no event of this run was finished": not len(recorded.served["done_us"]),
        "no tick of the autoscaler saw the group": not recorded.ticks,
        "its report knows no replica-minutes": not result.replica_minutes,
    }
    if found := [why for why, holds in reasons.items() if holds]:
        raise InvalidSettingsError([f"{folder}: {found[0]}"])
    return recorded


def _record(folder: Path, name: str, into: type[Any], absent: str) -> Any:
    try:
        return into.load(folder)
    except FileNotFoundError as missing:
        raise InvalidSettingsError([f"{folder}: it holds no {name}; {absent}"]) from missing
    except (OSError, msgspec.DecodeError) as wrong:
        raise InvalidSettingsError([f"{folder / name}: cannot be read ({wrong})"]) from wrong


def _served(events: Table, began_us: int) -> Table:
    found = events.plus(handed_us=coalesce(events["accepted_us"], events["placed_us"]))
    found = found.where((events["done_us"] != NONE) & (events["received_us"] != NONE))
    found = found.where(np.lexsort((found["offset"], found["partition"])))
    times = ("intended_us", "handed_us", "received_us", "done_us")
    return found.plus(**{name: found[name] - began_us for name in times})


def measure(recorded: Recorded) -> Measured:
    """Return what `recorded` shows."""
    ticks = recorded.ticks
    interval_us = round(float(recorded.info.section("autoscaler").get("decision_interval_s", 1.0)) * 1e6)
    pauses_us = _pauses_us(recorded)
    changes = [one for one in recorded.journal.changes if one.at_us >= recorded.started_us]
    before = [plan for plan in recorded.journal.plans if plan.at_us <= recorded.started_us]
    return Measured(
        service_rate=float(np.median([tick.service_rate for tick in ticks])),
        pause_s=percentile_s(pauses_us, 0.5),
        pauses=len(pauses_us),
        startup_s=percentile_s(np.array(started_us(changes), np.int64), 0.5),
        tick_offset_s=float(np.median([(tick.at_us - recorded.started_us) % interval_us for tick in ticks])) / 1e6,
        initial_replicas=len(before[-1].replicas) if before else ticks[0].requested_replicas,
    )


def _pauses_us(recorded: Recorded) -> Times:
    """Return the pauses of moved partitions in which events were waiting.

    The old owner must have finished an event after the plan was written: otherwise it was busy with other partitions.
    None under a comparator, whose events count as received when their service begins.
    """
    written_us = np.array([plan.at_us - recorded.started_us for plan in recorded.journal.plans], dtype=np.int64)
    if recorded.info.section("payment").get("runtime") or not len(written_us):
        return np.empty(0, np.int64)
    served = recorded.served
    moved = np.flatnonzero((np.diff(served["partition"]) == 0) & (np.diff(served["replica"]) != 0))
    free_us, next_us = served["done_us"][moved], served["received_us"][moved + 1]
    plan = np.maximum(0, np.searchsorted(written_us, next_us) - 1)
    seen = (served["handed_us"][moved + 1] < free_us) & (written_us[plan] < free_us) & (free_us < next_us)
    return (next_us - free_us)[seen]


def scenario_of(info: RunInfo, measured: Measured | None, changes: Mapping[str, Any]) -> Scenario:
    """Return the run's scenario: measured values over its settings, `changes` over both.

    measured: None for a simulated run, whose settings are its times.
    Raises InvalidSettingsError for what the simulator does not know, and for wrong changes.
    """
    runtime = info.section("payment").get("runtime", "")
    if runtime and runtime not in list(RebalanceProtocol):
        known = ", ".join(RebalanceProtocol)
        raise InvalidSettingsError([f"{info.run}: runtime {runtime!r} has no simulation; known are {known}"])
    left_out = [STAGES]  # a run has none
    if any(changes.get(key, info.policy) != info.policy for key in ("autoscaler.policy", "policy")):
        left_out.append(OPTIONS)
    told = [(key, value) for key, value in flat(info.scenario) if key.partition(".")[0] not in left_out]
    values = dict(sorted(told, key=lambda one: one[0].startswith(SIMULATION)))  # it wins over what stands before it
    if measured is not None:
        values |= {
            "payment.service_time_s": 1 / measured.service_rate,
            "autoscaler.initial_replicas": measured.initial_replicas,
            "autoscaler.tick_offset_s": measured.tick_offset_s,
        }
        measured_s = {"simulation.startup_s": measured.startup_s, "simulation.pause_s": measured.pause_s}
        values |= {key: value for key, value in measured_s.items() if value is not None}
    name = str(info.scenario.get("name", ""))
    return load_scenario(name if name in scenario_names() else BASE, values | dict(changes))


def simulate_again(recorded: Recorded, scenario: Scenario) -> tuple[Run, SimulationResult]:
    """Return the simulated run and its figures, every latency counted from the intended time."""
    served, partitions, run_s = recorded.served, scenario.payment.partitions, recorded.info.duration_s
    at_us = np.maximum(0, served["handed_us"])
    order = np.argsort(at_us, kind="stable")
    second = at_us // SECOND_US
    seconds = max(int(run_s), int(second.max()) + 1)
    counts = np.bincount(second * partitions + served["partition"], minlength=seconds * partitions)
    spacing = Spacing(recorded.info.section("load").get("spacing", Spacing.BURST))
    sent = Sent(counts.reshape(seconds, partitions), spacing, Split.TABLE, partitions, recorded.info.seed)
    arrivals = Arrivals(at_us[order], served["partition"][order].astype(np.int32))
    workload = Workload.whole(arrivals, partitions=partitions, duration_s=float(seconds))
    settings = settings_of(scenario)
    if protocol_of(scenario) in PLAN_PROTOCOLS:  # replicas read plans themselves: no heartbeat has to bring them
        pause_s = settings.rebalance_protocol.pause_s
        settings = replace(
            settings, rebalance_protocol=replace(settings.rebalance_protocol, heartbeat_s=0.0, rebalance_time_s=pause_s)
        )
    run = simulate(workload, policy_of(scenario, sent), settings, keep_events=True)
    run = replace(run, latency_us=run.latency_us + (at_us - served["intended_us"])[order])
    found = analyse(scenario, sent, run, wall_s=0.0)
    return run, msgspec.structs.replace(found, replica_minutes=replica_minutes(run.requested, 0, run_s))
