"""What is measured live for committed figures: whole runs, their processes, their start; and μ of one replica."""

import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from rich.console import Console

from bench import results
from bench.handover.load import fill
from bench.results import ClusterRow, LiveRow, ProcessRow, ServiceRateRow, SimulatedSide, StartupRow
from bench.scenario import load_scenario
from contracts.children import Child, python_module
from contracts.connection import Connection
from contracts.events import Grouping
from contracts.topics import Topic
from contracts.validation import as_environment
from report.result import Result
from report.run_info import RunInfo
from tailpack import provenance
from tailpack.errors import TailpackError
from tailpack.local.resources import ResourceMeter, load_usages
from tailpack.local.topics import own_kafka
from tailpack.run import METER_EVERY_S, Run
from tailpack.watch import Watcher

if TYPE_CHECKING:
    from bench.grouping_live import GroupingLiveRow
    from bench.replay.measured import Measured
    from bench.replay.replay import Figures
    from bench.simulation.result import SimulationResult

Question = tuple[str, str, int]
"""Scenario, policy, seed."""


def run_scenario(scenario: str, changes: dict[str, object], out: Path, load_workers: int = 0) -> Path:
    """Run a scenario, say its verdict, return its folder."""
    console = Console(stderr=True)
    folder = Run(load_scenario(scenario, changes), console, out, load_workers=load_workers).execute()
    console.print(Result.load(folder).verdict, highlight=False, soft_wrap=True)
    return folder


def live_row(result: Result) -> LiveRow:
    """Return the row that stands for a run."""
    known = {name: getattr(result, name) for name in LiveRow.__struct_fields__ if hasattr(result, name)}
    return LiveRow(**known, lateness_p99_s=result.lateness.p99_s)


def cluster_row(result: Result) -> ClusterRow:
    """Return the row that stands for a run of pods."""
    rounds = result.rebalances.rounds if result.rebalances else ()
    pauses = [one.pause_s for one in rounds if one.pause_s is not None]
    p99, longest = (float(one) for one in np.percentile(pauses, (99, 100))) if pauses else (None, None)
    return ClusterRow(
        **msgspec.structs.asdict(live_row(result)),
        moved_partitions=result.moved_partitions,
        start_p50_s=result.starts.p50_s if result.starts else None,
        start_max_s=result.starts.max_s if result.starts else None,
        pause_p99_s=p99,
        pause_max_s=longest,
        clock_skew_s=result.clock_skew_s,
    )


def run_live(
    question: Question,
    out: Path,
    run: Callable[[str, dict[str, object], Path], Path] = run_scenario,
    *,
    load_workers: int = 0,
    changes: Mapping[str, object] = MappingProxyType({}),
    row_of: Callable[[Result], LiveRow] = live_row,
) -> LiveRow:
    """Run a scenario under a policy, simulate it again from its own events and times, and return the row.

    run: how; returns the run's folder. load_workers: processes that `run` lets share the load. changes: dotted key →
    value over the scenario's. row_of: makes the row, without what is simulated.
    """
    from bench.replay.replay import replay  # noqa: PLC0415  compiled code

    folder = run(question[0], _told(question, changes), out)
    row = msgspec.structs.replace(row_of(Result.load(folder)), load_workers=load_workers, settings=said(changes))
    return msgspec.structs.replace(row, simulated=_beside(row, replay(folder)[0].simulated))


def _told(question: Question, changes: Mapping[str, object]) -> dict[str, object]:
    _, policy, seed = question
    return {**changes, "autoscaler.policy": policy, "seed": seed}


def _beside(live: LiveRow, simulated: "Figures | SimulationResult") -> SimulatedSide | None:
    """Return what the simulator says of a live run, and how far that is from it; None where that is not known."""
    if live.replica_minutes is None or simulated.p999_s is None:
        return None
    return SimulatedSide(
        in_sla=simulated.in_sla,
        p999_s=simulated.p999_s,
        replica_minutes=simulated.replica_minutes,
        in_sla_points=100 * (simulated.in_sla - live.in_sla),
        replica_minutes_share=simulated.replica_minutes / live.replica_minutes - 1,
    )


def run_all(
    questions: Sequence[Question],
    into: Path,
    run: Callable[[Question], LiveRow],
    announce: Callable[[str], None],
    *,
    load_workers: int = 0,
    settings: tuple[str, ...] = (),
    answers: tuple[str, type[LiveRow]] = ("live", LiveRow),
) -> None:
    """Answer every question whose valid answer `into` does not hold yet; each is kept as soon as it is there.

    load_workers, settings: with these, which those answers must have had, too. answers: name of the file that holds
    them, and what they are.
    """
    name, kind = answers
    kept = [row.result for row in results.load(name, kind, into)]
    known = {asked(row) for row in kept if row.valid and (row.load_workers, row.settings) == (load_workers, settings)}
    still_open = [question for question in questions if question not in known]
    for number, question in enumerate(still_open, 1):
        scenario, policy, seed = question
        announce(f"{scenario}, {policy}, seed {seed}: {number} of {len(still_open)}")
        results.keep(name, [run(question)], provenance.origin(), into, place)


def forecast_all(
    questions: Sequence[Question],
    into: Path,
    measured: "Measured",
    changes: Mapping[str, object] = MappingProxyType({}),
    *,
    load_workers: int = 0,
) -> None:
    """Put beside each answer that `into` has without one what the simulator foretells, by the times of another run."""
    from bench.replay.world import forecast, times_for_another  # noqa: PLC0415  compiled code

    for kept in results.load("live", LiveRow, into):
        row, question = kept.result, asked(kept.result)
        same = question in questions and (row.load_workers, row.settings) == (load_workers, said(changes))
        if not same or row.forecast is not None:
            continue
        world = load_scenario(question[0], times_for_another(measured) | _told(question, changes))
        foretold = msgspec.structs.replace(row, forecast=_beside(row, forecast(world, measured)))
        results.keep("live", [foretold], kept.origin, into, place)


def shuffled(scenarios: Sequence[str], policies: Sequence[str], runs: int, order: int) -> list[Question]:
    """Return every question in random order, round by round: at any time all have run as often, give or take one.

    order: seed of that order.
    """
    chance = random.Random(order)
    rounds = ([(*question, seed) for question in product(scenarios, policies)] for seed in range(1, runs + 1))
    return [question for one in rounds for question in chance.sample(one, len(one))]


def asked(row: LiveRow) -> Question:
    """Return what tells one run from another."""
    return row.scenario, row.policy, row.seed


def place(row: LiveRow) -> tuple[object, ...]:
    """Return what no two rows of a file share."""
    return *asked(row), row.load_workers, row.settings


def said(changes: Mapping[str, object]) -> tuple[str, ...]:
    """Return what is set over a scenario as a row has it."""
    return tuple(f"{key}={value}" for key, value in sorted(changes.items()))


def run_grouping(grouping: Grouping, changes: Mapping[str, object], out: Path) -> "GroupingLiveRow":
    """Run scenario `grouping` under one grouping; return it beside what the simulator foretells, and makes of it.

    changes: dotted key → value over the scenario's.
    """
    from bench.grouping_live import SCENARIO, GroupingLiveRow, foretell  # noqa: PLC0415  compiled code
    from bench.replay.replay import replay  # noqa: PLC0415

    told: dict[str, object] = {**changes, "load.grouping": grouping.value}
    foretold = foretell(load_scenario(SCENARIO, told))
    folder = run_scenario(SCENARIO, told, out)
    result = Result.load(folder)
    row = live_row(result)
    row = msgspec.structs.replace(row, simulated=_beside(row, replay(folder)[0].simulated))
    overtaken = result.integrity.order_violations_key if result.integrity else None
    return GroupingLiveRow(**msgspec.structs.asdict(row), grouping=grouping, overtaken=overtaken, **foretold)


def process_rows(folder: Path, rate: int) -> list[ProcessRow]:
    """Return what each process of the run in `folder` used under a steady load. rate: events/s."""
    topology = RunInfo.load(folder).topology
    return [
        ProcessRow(
            rate=rate,
            topology=topology,
            name=usage.name,
            cores=round(usage.cores, 3),
            peak_mib=round(usage.peak_mib, 1),
        )
        for usage in load_usages(folder / "processes.json")
        if not usage.name.startswith("spark")
    ]


def startup_rows(folder: Path) -> list[StartupRow]:
    """Return when the run in `folder` had done each step of its start."""
    return [StartupRow(step=step, at_s=at_s) for step, at_s in RunInfo.load(folder).phases_s.items()]


def measured_service_rate(service_time_s: float, events: int, console: Console) -> ServiceRateRow:
    """Serve `events` that lie ready and time them from the first done to the last.

    Raises TailpackError when they are not done within three times the ideal time, and half a minute.
    """
    with console.status(f"serving {events} events of {service_time_s} s"), own_kafka("rate", 1) as connection:
        fill(connection, events, partitions=1)
        with tempfile.TemporaryDirectory() as folder:
            return _serve(connection, service_time_s, events, Path(folder))


def _serve(connection: Connection, service_time_s: float, events: int, folder: Path) -> ServiceRateRow:
    settings = {"TAILPACK_REPLICA": "payment-0", "TAILPACK_SERVICE_TIME_S": str(service_time_s)}
    environ = os.environ | as_environment(connection) | settings
    replica = Child("payment-0", python_module("services.payment"), environ, folder / "payment-0.log")
    watcher = Watcher(connection, Topic.PAYMENTS_SETTLED, latency_target_s=float("inf"))
    meter, metered_at = ResourceMeter(), 0.0
    deadline = time.monotonic() + 3 * events * service_time_s + 30
    replica.start()
    try:
        while len(watcher.poll(0.1).finished) < events:
            if time.monotonic() > deadline or replica.exit_status is not None:
                raise TailpackError(f"the replica did not finish {events} events: {replica.last_words()}")
            if replica.pid and time.monotonic() >= metered_at + METER_EVERY_S:
                metered_at = time.monotonic()
                meter.sample({replica.name: replica.pid}, metered_at)
    finally:
        replica.terminate()
        replica.wait()
        watcher.close()
    state = watcher.state
    assert state.first_done_us is not None
    rate = (events - 1) / ((state.last_done_us - state.first_done_us) / 1e6)
    return ServiceRateRow(
        service_time_s=service_time_s,
        events=events,
        service_rate=round(rate, 2),
        share_of_ideal=round(rate * service_time_s, 4),
        cpu_per_event_s=round(meter.usages["payment-0"].cores / rate, 6),
        peak_mib=round(meter.peak_mib, 1),
    )
