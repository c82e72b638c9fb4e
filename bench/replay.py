"""Simulate a finished live run with its events and measured times, and compare the result with the live figures.

The measured times are the service rate (μ), the pause of a moved partition, the start-up time and the tick offset.
`python -m bench.replay RUN_DIR` prints the figures of other policies on the load of a run, as lines of JSON. If that is
impossible, the last line is {"error": why}.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from bench import BenchError, reason
from bench.scenario import SIMULATION, Scenario, load_scenario, scenario_names
from bench.sections import OPTIONS, STAGES
from bench.simulation.run import RANKS, SimulationResult, analyse, percentile_s, policy_of, run_scenario
from bench.simulation.sent_events import SentEvents, build_events, protocol_of, replica_minutes, settings_of
from contracts.journal import TickRecord
from contracts.rebalance_protocol import PLAN_PROTOCOLS, RebalanceProtocol
from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from loadgen.schedule import SECOND_US, Spacing, Split
from report import ReportError
from report.history import Journal, startup_times_us
from report.result import RESULT_FILE, OtherPolicy, Result
from report.run_info import EVENTS, RUN_FILE, RunInfo, flat
from report.stored import load_events, load_journal
from report.table import NONE, Table, coalesce

Times = NDArray[np.int64]
BASE: Final = "w1"
"""Scenario that is loaded for a run whose own scenario is not built in. The run's settings override its values."""
IN_SLA_POINTS: Final = 0.5
"""Shares in time of the live and the simulated run count as equal up to this difference, in percentage points."""
REPLICA_MINUTES_SHARE: Final = 0.03
"""Replica-minutes of both runs count as equal up to this difference, as a share of the live value."""
COUNTS: Final = ("scale_ups", "scale_downs", "reassignments", "moved_partitions")
FIGURES: Final = ("events", "in_sla", *RANKS, "replica_minutes", *COUNTS)
"""Figures that are compared, with their names in a report."""
OTHER_POLICIES: Final = ("tail-aware", "overprovisioned", "keda-hpa", "algorithm-2")
"""Our policy, a constant count for the peak, the Kubernetes autoscaler with KEDA, and a published policy."""
MAX_EVENTS: Final = 3_000_000
"""Maximum number of events for which a report or a page simulates other policies."""
MAX_STEPS: Final = 240
"""Maximum number of times at which figures so far are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """The files of a finished run."""

    info: RunInfo
    result: Result
    served: Table
    """Every finished event, sorted by partition and offset. Times are µs since second 0. `handed_us`: time at which the
    event was sent to Payment's topic. Other runtimes set `received_us` when they begin to serve an event."""
    journal: Journal
    """Times in µs since 1970."""

    @property
    def started_us(self) -> int:
        """Time of second 0, µs since 1970."""
        return self.result.provenance.started_us

    @property
    def ended_us(self) -> int:
        """End of the workload, µs since 1970."""
        return self.started_us + round(self.info.duration_s * 1e6)

    @property
    def ticks(self) -> list[TickRecord]:
        """Ticks during the workload that observed the group."""
        found = (tick for tick in self.journal.ticks if tick.partitions)
        return [tick for tick in found if self.started_us <= tick.at_us < self.ended_us]


class MeasuredTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times measured in one run. None: the run has no observation."""

    service_rate: float
    """Service rate (μ), events/s, as the autoscaler estimated it: median over its ticks."""
    pause_s: float | None
    """Median pause of a moved partition with waiting events, from the last event done at its old owner until the new
    owner received the next event."""
    pauses: int
    """Number of observed pauses."""
    startup_s: float | None
    """Median time from the request for a replica until it was ready."""
    tick_offset_s: float
    """Median time by which ticks follow multiples of the decision interval."""
    initial_replicas: int
    """Replicas of the plan in force at second 0."""


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a run, live and simulated."""

    run: str
    scenario: str
    policy: str
    """Policy of the simulation."""
    live_policy: str
    latency_target_s: float
    measured: MeasuredTimes
    live: dict[str, Any]
    """FIGURES of the report. moved_partitions is None if the group itself assigns its partitions, because the journal
    then does not contain moves."""
    simulated: dict[str, Any]
    differences: dict[str, Any]
    """Simulated value minus live value: in_sla_points (percentage points), replica_minutes_share (share of the live
    value), latencies (s) and counts. None: the live value is unknown."""
    within: dict[str, bool]
    """Figure → whether it differs by at most its limit: IN_SLA_POINTS or REPLICA_MINUTES_SHARE."""


def replay(folder: Path, changes: Mapping[str, Any] | None = None) -> ReplayResult:
    """Simulate the run in `folder`, and compare the result with it.

    changes: dotted key → value that overrides the run's setting or the measured time.
    Raises InvalidSettingsError for invalid changes, and if the run cannot be simulated.
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
    deltas = {name: None if live[name] is None else round(again[name] - live[name], 6) for name in (*RANKS, *COUNTS)}
    return ReplayResult(
        run=recorded.info.run,
        scenario=scenario.name,
        policy=result.policy,
        live_policy=recorded.info.policy,
        latency_target_s=recorded.info.latency_target_s,
        measured=measured,
        live=live,
        simulated=again,
        differences={"in_sla_points": points, "replica_minutes_share": more, **deltas},
        within={"in_sla": abs(points) <= IN_SLA_POINTS, "replica_minutes": abs(more) <= REPLICA_MINUTES_SHARE},
    )


class SoFar(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a simulated run from second 0 until the end of each step."""

    policy: str
    step_s: int
    in_time: list[float]
    """Share of the events that arrived so far and are in time."""
    replica_minutes: list[float]


class Replay:
    """Simulates the load of a run with other settings. Raises BenchError if that is impossible.

    A live run with a report, and events without a scenario, are simulated with their events and measured times; any
    other run with those of its scenario.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self.info = RunInfo.load(folder)
        except (OSError, *DECODE_ERRORS) as error:
            raise BenchError(str(error)) from error
        _check_size(self.info.events_scheduled)

    @property
    def other_policies(self) -> list[str]:
        """Three policies that the run is compared with."""
        return [one for one in ("tail-aware", *reversed(OTHER_POLICIES)) if one != self.info.policy][:3]

    @cached_property
    def _recorded(self) -> tuple[RecordedRun, MeasuredTimes] | None:
        is_live = self.info.world == "live" and (self._folder / RESULT_FILE).exists()
        if not is_live and self.info.world != "unknown":
            return None
        recorded = read_run(self._folder)
        return recorded, measure(recorded)

    def run(self, changes: Mapping[str, Any]) -> tuple[Run, SimulationResult, NDArray[np.int64]]:
        """Return the run, its figures, and the number of events until the end of each second.

        Events that arrived after the run's duration count in its last second.
        """
        try:
            recorded, measured = self._recorded or (None, None)
            scenario = scenario_of(self.info, measured, changes)
            if recorded is not None:
                run, result = simulate_again(recorded, scenario)
                seconds = max(1, ceil(self.info.duration_s))
                second = np.clip(recorded.served["handed_us"] // SECOND_US, 0, seconds - 1)
                return run, result, np.cumsum(np.bincount(second, minlength=seconds))
            sent = build_events(scenario)
            _check_size(sent.events)
            if self.info.world == "simulated" and sent.events != self.info.events_scheduled:
                raise ValueError(f"{self.info.run}: cannot be simulated, because run.json does not contain its trace")
            run, result = run_scenario(scenario, sent, keep_events=False)
            return run, result, np.cumsum(sent.table().sum(axis=1))
        except (InvalidSettingsError, OSError, ValueError, *DECODE_ERRORS) as error:
            raise BenchError(str(error)) from error

    def so_far(self, changes: Mapping[str, Any]) -> SoFar:
        """Return the figures at the end of each step. changes: dotted key → value that overrides a setting."""
        run, result, events = self.run(changes)
        step_s = -(-len(events) // MAX_STEPS)
        run_s = self.info.duration_s or len(events)
        ends_s = [*range(step_s, len(events), step_s), len(events)]
        target_s = changes.get("target.latency_target_s", self.info.latency_target_s)
        late = np.concatenate([[0], np.cumsum(run.latency_us > round(target_s * 1e6))])
        arrived = events[np.array(ends_s) - 1]
        served = np.minimum(arrived, len(run.latency_us))
        share = 1 - (late[served] + arrived - served) / np.maximum(1, arrived)
        return SoFar(
            policy=result.policy,
            step_s=step_s,
            in_time=(np.floor(share * 1e6 + 1e-6) / 1e6).tolist(),  # never rounded up to the SLO
            replica_minutes=[round(replica_minutes(run.requested, 0, min(end_s, run_s)), 3) for end_s in ends_s],
        )


def _check_size(events: int) -> None:
    if events > MAX_EVENTS:
        raise BenchError(f"{events:,} events take too long to simulate (maximum {MAX_EVENTS:,})")


def simulate_other_policies(folder: Path) -> tuple[OtherPolicy, ...]:
    """Simulate the run's events with each of OTHER_POLICIES; return cost and share in time. Raises BenchError."""
    again, found = Replay(folder), list[OtherPolicy]()
    for policy in OTHER_POLICIES:
        if policy != again.info.policy:
            result = again.run({"autoscaler.policy": policy})[1]
            found.append(OtherPolicy(policy=policy, in_sla=result.in_sla, replica_minutes=result.replica_minutes))
    return tuple(found)


def read_run(folder: Path) -> RecordedRun:
    """Read the folder of a run with a report. Raises InvalidSettingsError if anything is missing."""
    info = _record(folder, RUN_FILE, RunInfo, "this is not the folder of a run")
    result = _record(folder, RESULT_FILE, Result, "make the report first: tailpack report RUN_DIR")
    try:
        events, journal = load_events(folder / EVENTS).table(), Journal(load_journal(folder))
    except ReportError as error:
        raise InvalidSettingsError([f"{folder}: {error}"]) from error
    recorded = RecordedRun(info, result, _served(events, result.provenance.started_us), journal)
    reasons = {
        "the run was interrupted, so its figures do not cover a whole run": info.interrupted,
        "no event of this run was finished": not len(recorded.served["done_us"]),
        "no tick of the autoscaler observed the group": not recorded.ticks,
        "its report has no replica-minutes, because it has no journal": not result.replica_minutes,
    }
    if found := [why for why, applies in reasons.items() if applies]:
        raise InvalidSettingsError([f"{folder}: {found[0]}"])
    return recorded


def _record(folder: Path, name: str, into: type[Any], absent: str) -> Any:
    try:
        return into.load(folder)
    except FileNotFoundError as missing:
        raise InvalidSettingsError([f"{folder}: {name} is missing; {absent}"]) from missing
    except (OSError, *DECODE_ERRORS) as error:
        raise InvalidSettingsError([f"{folder / name}: cannot be read ({error})"]) from error


def _served(events: Table, began_us: int) -> Table:
    found = events.plus(handed_us=coalesce(events["accepted_us"], events["placed_us"]))
    found = found.where((events["done_us"] != NONE) & (events["received_us"] != NONE))
    found = found.where(np.lexsort((found["offset"], found["partition"])))
    times = ("intended_us", "handed_us", "received_us", "done_us")
    return found.plus(**{name: found[name] - began_us for name in times})


def measure(recorded: RecordedRun) -> MeasuredTimes:
    """Measure the times of a run."""
    ticks = recorded.ticks
    interval_us = round(float(recorded.info.section("autoscaler").get("decision_interval_s", 1.0)) * 1e6)
    pauses_us = _pauses_us(recorded)
    changes = [change for change in recorded.journal.changes if change.at_us >= recorded.started_us]
    before = [plan for plan in recorded.journal.plans if plan.at_us <= recorded.started_us]
    return MeasuredTimes(
        service_rate=float(np.median([tick.service_rate for tick in ticks])),
        pause_s=percentile_s(pauses_us, 0.5),
        pauses=len(pauses_us),
        startup_s=percentile_s(np.array(startup_times_us(changes), np.int64), 0.5),
        tick_offset_s=float(np.median([(tick.at_us - recorded.started_us) % interval_us for tick in ticks])) / 1e6,
        initial_replicas=len(before[-1].replicas) if before else ticks[0].requested_replicas,
    )


def _pauses_us(recorded: RecordedRun) -> Times:
    """Return the pauses of moved partitions in which events were waiting.

    A move counts only if the old owner finished an event of the partition after the plan was written; otherwise it was
    busy with other partitions. The result is empty for other runtimes, whose `received_us` is the start of service.
    """
    written_us = np.array([plan.at_us - recorded.started_us for plan in recorded.journal.plans], dtype=np.int64)
    if recorded.info.section("payment").get("runtime") or not len(written_us):
        return np.empty(0, np.int64)
    served = recorded.served
    moved = np.flatnonzero((np.diff(served["partition"]) == 0) & (np.diff(served["replica"]) != 0))
    free_us, next_us = served["done_us"][moved], served["received_us"][moved + 1]
    plan = np.maximum(0, np.searchsorted(written_us, next_us) - 1)
    observed = (served["handed_us"][moved + 1] < free_us) & (written_us[plan] < free_us) & (free_us < next_us)
    return (next_us - free_us)[observed]


def scenario_of(info: RunInfo, measured: MeasuredTimes | None, changes: Mapping[str, Any]) -> Scenario:
    """Return the run's scenario, overridden by measured values and then by `changes`.

    measured: None for a simulated run, whose settings already define its times.
    Raises InvalidSettingsError if the simulator does not support the runtime, or for invalid changes.
    """
    runtime = info.section("payment").get("runtime", "")
    if runtime and runtime not in list(RebalanceProtocol):
        known = ", ".join(RebalanceProtocol)
        raise InvalidSettingsError([f"{info.run}: runtime {runtime!r} cannot be simulated; supported are {known}"])
    left_out = [STAGES]  # runs do not have stages
    if any(changes.get(key, info.policy) != info.policy for key in ("autoscaler.policy", "policy")):
        left_out.append(OPTIONS)
    settings = [(key, value) for key, value in flat(info.scenario) if key.partition(".")[0] not in left_out]
    # the simulation's keys come last, because they override others
    values = dict(sorted(settings, key=lambda setting: setting[0].startswith(SIMULATION)))
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


def simulate_again(recorded: RecordedRun, scenario: Scenario) -> tuple[Run, SimulationResult]:
    """Return the simulated run and its figures; latencies are measured from the intended send time."""
    served, partitions, run_s = recorded.served, scenario.payment.partitions, recorded.info.duration_s
    at_us = np.maximum(0, served["handed_us"])
    order = np.argsort(at_us, kind="stable")
    second = at_us // SECOND_US
    seconds = max(int(run_s), int(second.max()) + 1)
    counts = np.bincount(second * partitions + served["partition"], minlength=seconds * partitions)
    spacing = Spacing(recorded.info.section("load").get("spacing", Spacing.BURST))
    sent = SentEvents(counts.reshape(seconds, partitions), spacing, Split.TABLE, partitions, recorded.info.seed)
    arrivals = Arrivals(at_us[order], served["partition"][order].astype(np.int32))
    workload = Workload.whole(arrivals, partitions=partitions, duration_s=float(seconds))
    settings = settings_of(scenario)
    if protocol_of(scenario) in PLAN_PROTOCOLS:  # replicas read plans without waiting for a heartbeat
        pause_s = settings.rebalance.pause_s
        settings = replace(settings, rebalance=replace(settings.rebalance, heartbeat_s=0.0, rebalance_time_s=pause_s))
    run = simulate(workload, policy_of(scenario, sent), settings, keep_events=True)
    run = replace(run, latency_us=run.latency_us + (at_us - served["intended_us"])[order])
    found = analyse(scenario, sent, run, wall_s=0.0)
    return run, msgspec.structs.replace(found, replica_minutes=replica_minutes(run.requested, 0, run_s))


if __name__ == "__main__":
    try:
        replay_of = Replay(Path(sys.argv[1]))
        for name in replay_of.other_policies:
            sys.stdout.buffer.write(msgspec.json.encode(replay_of.so_far({"autoscaler.policy": name})) + b"\n")
            sys.stdout.buffer.flush()
    except Exception as failed:  # the live page shows why
        sys.stdout.buffer.write(msgspec.json.encode({"error": reason(failed)}) + b"\n")
        sys.exit(1)
