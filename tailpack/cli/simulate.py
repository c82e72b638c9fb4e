"""`tailpack simulate` and `optimum`: run a scenario, a trace or a finished run in the simulator."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from report.wording import UNKNOWN, count, duration, minutes, over, share
from tailpack.cli import options
from tailpack.cli.progress import next_step
from tailpack.errors import TailpackError
from tailpack.provenance import check_no_run

if TYPE_CHECKING:
    from bench.replay import MeasuredTimes, ReplayResult
    from bench.scenario import Scenario as ScenarioFile
    from bench.simulation.chain import ChainResult, StageResult
    from bench.simulation.run import SimulationResult
    from bench.simulation.sent_events import SentEvents

COMPILING_S: Final = 20
"""Typical time on two cores in which the code for one run is compiled, in seconds."""
TRACES: Final = (".csv", ".parquet")
LATENCIES: Final = {"p50": "p50_s", "p99": "p99_s", "p99.9": "p999_s", "worst": "max_s"}
COUNTS: Final = {
    "scaled up": "scale_ups",
    "scaled down": "scale_downs",
    "reassigned": "reassignments",
    "partitions moved": "moved_partitions",
}
"""Label in the table → field of the result."""


def simulate(
    scenario: options.Scenario = "",
    *,
    policy: options.Policy = None,
    trace: options.Trace = None,
    latency: options.Latency = None,
    percentile: options.Percentile = None,
    service_time: options.ServiceTime = None,
    startup: options.Startup = None,
    most: options.Max = None,
    duration: options.Duration = None,
    seed: options.Seed = None,
    changes: options.Changes = None,
    best: Annotated[
        bool, typer.Option("--optimum", help="Also compute the cheapest possible schedule (at most 2 min, cached).")
    ] = False,
    as_json: options.AsJson = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to which the run is written: every event, and the journal.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN_DIR",
            help="Simulate the events of a finished run with the times measured in it, and compare the result with the "
            "live figures; instead of SCENARIO.",
        ),
    ] = None,
) -> None:
    """Simulate a scenario, or the events of a finished run, within seconds, and print the figures."""
    overrides = options.parse_changes(changes, policy=policy, seed=seed, duration_s=duration)
    overrides |= options.slo_changes(latency, percentile, service_time, startup, most)
    _announce_compiler()
    if source is not None:
        if scenario or trace or out or best:
            raise TailpackError("--from RUN_DIR cannot be combined with SCENARIO, --trace, --out or --optimum")
        _simulate_run(source, overrides, as_json=as_json)
        return
    if not scenario:
        raise TailpackError("Missing argument 'SCENARIO': for example w1, taxi; `tailpack list scenarios` lists all")
    chosen, loaded_trace = options.load_with_trace(scenario, trace, overrides)
    _simulate(chosen, loaded_trace, out, best=best, as_json=as_json)


def _simulate(chosen: "ScenarioFile", trace: Any, out: Path | None, *, best: bool, as_json: bool) -> None:
    from bench.simulation.run import run_scenario  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.sent_events import build_events  # noqa: PLC0415

    warn_live_only_faults([chosen])
    if chosen.stages:
        _simulate_chain(chosen, build_events(chosen, trace), out, as_json=as_json)
        return
    if out is not None:
        check_no_run(out)
    sent = build_events(chosen, trace)
    with Console(stderr=True).status(f"simulating {count(sent.events)} events"):
        run, result = run_scenario(chosen, sent, keep_events=out is not None)
    if best:
        result = _with_optimum(result, chosen, sent)
    if trace is not None:
        result = msgspec.structs.replace(result, scenario=trace.name)
        note = f"{trace.name}: spacing of events within each second: {chosen.load.spacing} (--set spacing=… changes it)"
        if sent.trace is not None:
            note = f"{trace.name}: {sent.events:,} events at their recorded times, {sent.partitions} partitions"
        _note(note)
    if out is not None:
        from bench.simulation.folder import write_run  # noqa: PLC0415
        from tailpack.provenance import describe_simulated  # noqa: PLC0415

        written = write_run(out, run, describe_simulated(chosen, sent, run.drained_us, out))
        _note(f"written: {written}; report: tailpack report {shlex.quote(str(written))}")
    if as_json:
        more = {"regret": result.regret, "plan_changes": result.plan_changes, "moved": result.moved_partitions}
        options.print_json({**msgspec.to_builtins(result), **more})
    else:
        Console().print(figures_of(result, chosen))
    report = f"tailpack report {shlex.quote(str(out))}" if out else f"tailpack simulate {chosen.name} --out out/mine"
    next_step(report, f"tailpack compare {chosen.name} --policy {chosen.autoscaler.policy} …", as_json=as_json)


def optimum(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO|TRACE", help="A scenario, or a trace that replaces the load of w1.")
    ],
    *,
    trace: options.Trace = None,
    seed: options.Seed = None,
    changes: options.Changes = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute the cheapest schedule of replica counts and owners for a scenario's events, and a proven lower bound.

    The simulator executes and measures the schedule. With more than five partitions only the lower bound is computed.
    """
    from bench.simulation.optimum import find_optimum  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent_events import build_events  # noqa: PLC0415

    _announce_compiler()
    if Path(scenario).suffix in TRACES and trace is None:
        scenario, trace = "w1", Path(scenario)
    chosen, loaded_trace = options.load_with_trace(
        scenario, trace, options.parse_changes(changes, policy="clairvoyant", seed=seed)
    )
    sent = build_events(chosen, loaded_trace)
    warn_live_only_faults([chosen])
    with _searching(sent.events):
        found, schedule = find_optimum(chosen, sent)
    simulated = run_scenario(chosen, sent, keep_events=False)[1] if schedule else None
    best = found.optimum_replica_minutes
    result = msgspec.to_builtins(found) | {
        "gap": best / found.lower - 1 if best and found.lower else None,
        "scenario": chosen.name,
        "seed": chosen.seed,
        "events": sent.events,
        "simulated_replica_minutes": simulated.replica_minutes if simulated else None,
        "simulated_in_sla": simulated.in_sla if simulated else None,
    }
    if as_json:
        options.print_json(result)
        return
    rows = {
        "optimum": found.why or f"{minutes(best)} replica-minutes, {count(found.late)} events late",
        "simulated": f"{minutes(simulated.replica_minutes)}, {share(simulated.in_sla)} in time" if simulated else "–",
        "lower bound": minutes(found.lower),
        "lower bound if no event is late": minutes(found.lower_none_late),
        "method": found.method,
        "found in": duration(found.wall_s),
    }
    Console().print(_pairs(rows, f"{scenario}, seed {chosen.seed}: {count(sent.events)} events"))


def warn_live_only_faults(scenarios: "Iterable[ScenarioFile]") -> None:
    """Warn on standard error about faults that a simulation ignores."""
    from loadgen.faults import DUPLICATE, OUT_OF_ORDER, POISON, Fault  # noqa: PLC0415

    for scenario in scenarios:
        kinds = {fault.kind for fault in map(Fault.of, scenario.load.faults)} & {POISON, DUPLICATE, OUT_OF_ORDER}
        if kinds:
            why = "ignored; they need a live run"
            _note(f"{scenario.name}: load.faults: {', '.join(sorted(kinds))}: {why}")


def _announce_compiler() -> None:
    from autoscaler.jit import load_compiler  # noqa: PLC0415

    load_compiler(lambda: _note(f"compiling for about {COMPILING_S} s; later runs use the compiled code"))


def _note(text: str) -> None:
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def _with_optimum(result: "SimulationResult", scenario: "ScenarioFile", sent: "SentEvents") -> "SimulationResult":
    """Return the result with the optimum of its events. If that cannot be computed, print why."""
    from bench.simulation.optimum import find_optimum, why_not  # noqa: PLC0415  as above

    if why := why_not(scenario, sent):
        _note(f"no optimum: {why}")
        return result
    with _searching(sent.events):
        found, _ = find_optimum(scenario, sent)
    if found.why:
        _note(f"no optimum: {found.why}")
    best, lower = found.optimum_replica_minutes, found.lower
    return msgspec.structs.replace(result, optimum_replica_minutes=best, optimum_lower=lower)


def _simulate_run(folder: Path, changes: dict[str, Any], *, as_json: bool) -> None:
    from bench.replay import replay  # noqa: PLC0415  compiled code only where it is needed

    found = replay(folder, changes)
    if as_json:
        options.print_json(found)
        return
    Console().print(side_by_side(found))
    Console().print(measured_in(found.measured), style="dim", highlight=False, soft_wrap=True)


def side_by_side(found: "ReplayResult") -> Table:
    """Return a table with live value, simulated value, difference and verdict of each figure."""
    same = found.policy == found.live_policy
    title = f"{found.run}, " + (found.policy if same else f"live {found.live_policy}, simulated {found.policy}")
    table = Table("", "live", "simulated", "difference", "", box=None, title=title)
    for column in table.columns[1:4]:
        column.justify = "right"
    rows = {
        f"within {found.latency_target_s:g} s": ("in_sla", share, "in_sla_points", "{:+.3f} points", "0.5 points"),
        "replica-minutes": ("replica_minutes", minutes, "replica_minutes_share", "{:+.2%}", "3 %"),
        **{name: (key, duration, key, "{:+.3f} s", "") for name, key in LATENCIES.items()},
        **{name: (key, count, key, "{:+d}", "") for name, key in COUNTS.items()},
    }
    for name, (key, words, difference, number_format, limit) in rows.items():
        delta = found.differences[difference]
        verdict = f"{'within' if found.within[key] else 'more than'} {limit}" if same and limit else ""
        sides = [words(side[key]) for side in (found.live, found.simulated)]
        table.add_row(name, *sides, UNKNOWN if delta is None else number_format.format(delta), verdict)
    return table


def measured_in(measured: "MeasuredTimes") -> str:
    """Return in one line the times that were measured in the run and are used by the simulator."""
    times = {
        "μ": f"{measured.service_rate:.1f} events/s",
        "pause of a moved partition": f"{duration(measured.pause_s)} ({measured.pauses} observations)",
        "start-up": duration(measured.startup_s),
        "replicas at the start": f"{measured.initial_replicas}",
    }
    return "measured in the run: " + ", ".join(f"{name} {value}" for name, value in times.items())


def figures_of(result: "SimulationResult", scenario: "ScenarioFile") -> Table:
    """Return a table with one figure per line."""
    best, least = result.optimum_replica_minutes, result.optimum_lower
    rows = {
        "events": count(result.events),
        f"within {scenario.target.latency_target_s:g} s": share(result.in_sla),
        "after the first surge": share(result.in_sla_after_surge),
        **{name: duration(getattr(result, key)) for name, key in LATENCIES.items()},
        "replica-minutes": minutes(result.replica_minutes),
        "per-second packing": minutes(result.packing_replica_minutes),
        **({} if least is None else {"optimum": f"{minutes(best)}, lower bound {minutes(least)}"}),
        **({} if result.regret is None else {"regret": over(result.regret)}),
        **{name: count(getattr(result, key)) for name, key in COUNTS.items()},
        "simulated in": f"{duration(result.wall_s)}, of which policy {duration(result.policy_s)}",
    }
    if result.lost:
        rows["lost"] = count(result.lost)
    return _pairs(rows, f"{result.scenario}, {result.policy}, seed {result.seed}")


def _pairs(rows: dict[str, str], title: str) -> Table:
    table = Table(box=None, show_header=False, title=title)
    table.add_column(style="dim")
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _simulate_chain(scenario: "ScenarioFile", sent: "SentEvents", out: Path | None, *, as_json: bool) -> None:
    """Simulate a scenario with stages, and print the figures of each stage and of the whole chain."""
    from bench.simulation.chain import run_chain  # noqa: PLC0415  as above

    if out is not None:
        raise TailpackError(f"--out: {scenario.name} has stages, but a run folder holds one group; leave out --out")
    found = run_chain(scenario, sent)[1]
    if as_json:
        options.print_json(found)
        return
    how = "stages coordinated" if found.coordinated else "each stage alone"
    title = f"{found.scenario}, {how}, seed {found.seed}: {share(found.in_sla)} in time end to end"
    table = Table("", "events", "in W", "p99.9", "worst", "r-m", "most replicas", "plan changes", box=None, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for stage in found.stages:
        table.add_row(stage.stage, *_latency_and_cost(stage), str(stage.peak_replicas), str(stage.plan_changes))
    table.add_row("end to end", *_latency_and_cost(found))
    Console().print(table)


def _latency_and_cost(result: "ChainResult | StageResult") -> tuple[str, ...]:
    latencies = (duration(result.p999_s), duration(result.max_s))
    return count(result.events), share(result.in_sla), *latencies, minutes(result.replica_minutes)


def _searching(events: int) -> Status:
    return Console(stderr=True).status(f"searching for the optimum of {count(events)} events; the result is cached")
