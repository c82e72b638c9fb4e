"""`tailpack simulate` and `tailpack replay`: a scenario, a trace or a run that is over, in numbers, not processes."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from report.wording import UNKNOWN, count, duration, minutes, over, share
from tailpack.cli.options import (
    AsJson,
    Changes,
    Policy,
    Scenario,
    Seed,
    Trace,
    load_scenario_with,
    parse_changes,
    print_json,
)
from tailpack.errors import TailpackError
from tailpack.provenance import free_for_run

if TYPE_CHECKING:
    from bench.replay.measured import Measured
    from bench.replay.replay import Replayed
    from bench.scenario import Scenario as Question
    from bench.simulation.chain import ChainResult, StageResult
    from bench.simulation.result import SimulationResult
    from bench.simulation.sent import Sent

LONG_RUN_EVENTS: Final = 500_000
"""About from where on a run takes a second."""
TRACES: Final = (".csv", ".parquet")
LATENCIES: Final = {"p50": "p50_s", "p99": "p99_s", "p99.9": "p999_s", "worst": "max_s"}
COUNTS: Final = {
    "scaled up": "scale_ups",
    "scaled down": "scale_downs",
    "reassigned": "reassignments",
    "partitions moved": "moved_partitions",
}
"""What is shown of a result → its field."""


def simulate(
    scenario: Scenario,
    *,
    policy: Policy = None,
    trace: Trace = None,
    seed: Seed = None,
    changes: Changes = None,
    best: Annotated[
        bool,
        typer.Option(
            "--optimum/--no-optimum",
            help="Say beside it what the cheapest schedule of all would have cost: seconds, two minutes at most, kept "
            "for the next time; left out of large loads, whose takes longer.",
        ),
    ] = True,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder that takes the run: every event, and the journal. A simulated run there is replaced.",
        ),
    ] = None,
    times: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN_DIR",
            help="Folder of a live run: say what the scenario would come to live, where starts, handovers, commits and "
            "ticks take the times of that run.",
        ),
    ] = None,
) -> None:
    """Run a scenario in the simulator and show what came of it: seconds instead of minutes, nothing is started."""
    from bench.simulation.run import run_scenario  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    told = parse_changes(changes, policy=policy, seed=seed)
    if times is not None:
        _forecast(scenario, trace, told, times, out, as_json=as_json)
        return
    chosen, played = load_scenario_with(scenario, trace, told)
    say_live_only([chosen])
    if chosen.stages:
        _simulate_chain(chosen, sent_by(chosen, played), out, as_json=as_json)
        return
    if out is not None:
        free_for_run(out)
    sent = sent_by(chosen, played)
    with _progress(sent.events) as passed:
        run, result = run_scenario(chosen, sent, keep_events=out is not None, passed=passed)
    if best:
        result = _with_optimum(result, chosen, sent)
    if played is not None:
        result = msgspec.structs.replace(result, scenario=played.name)
        said = f"{played.name}: events {chosen.load.spacing} within each second; --set spacing=… changes that"
        if sent.trace is not None:
            said = f"{played.name}: {sent.events:,} events at times of their own, {sent.partitions} partitions"
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    if out is not None:
        from bench.simulation.folder import write_run  # noqa: PLC0415
        from tailpack.provenance import describe_simulated  # noqa: PLC0415

        written = write_run(out, run, describe_simulated(chosen, sent, run.drained_us, out))
        said = f"written: {written}; its report: tailpack report {shlex.quote(str(written))}"
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    if as_json:
        print_json(_with_names(result))
    else:
        Console().print(figures_of(result, chosen))


def _with_names(result: "SimulationResult") -> dict[str, Any]:
    """Return a result with what follows from its figures, under the names that others read."""
    more = {"regret": result.regret, "plan_changes": result.plan_changes, "moved": result.moved_partitions}
    return {**msgspec.to_builtins(result), **more}


def _forecast(
    name: str, trace: Path | None, told: dict[str, Any], times: Path, out: Path | None, *, as_json: bool
) -> None:
    """Show what a scenario would come to live, with the times of another run."""
    from bench.replay.measured import measured_run  # noqa: PLC0415  as above
    from bench.replay.world import forecast, times_for_another  # noqa: PLC0415

    if out is not None:
        raise TailpackError("--out: a forecast by --times keeps no events; leave one of them out")
    measured = measured_run(times)
    chosen, played = load_scenario_with(name, trace, times_for_another(measured) | told)
    result = forecast(chosen, measured, played)
    Console(stderr=True).print(measured_in(measured), style="dim", highlight=False, soft_wrap=True)
    if as_json:
        print_json(_with_names(result))
    else:
        Console().print(figures_of(result, chosen))


def optimum(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO|TRACE|RUN_DIR",
            help="A scenario; a trace, served in the world of w1; or the folder of a run.",
        ),
    ],
    *,
    trace: Trace = None,
    seed: Seed = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Find what events cost at least, by any schedule of counts and owners, with all of them known before.

    The schedule is carried out in the simulator, which judges it; the lower end is proven. Of a live run: its very
    events, with the times that it showed.
    """
    from bench.simulation.optimum import find_optimum  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.run import run_scenario  # noqa: PLC0415

    chosen, sent, spent, kept = _asked(scenario, trace, parse_changes(changes, policy="clairvoyant", seed=seed))
    say_live_only([chosen])
    with _looking(sent.events):
        found, schedule = find_optimum(chosen, sent)
    judged = run_scenario(chosen, sent, keep_events=False)[1] if schedule else None
    best = found.optimum_replica_minutes
    regret = spent / best - 1 if spent is not None and best and kept else None
    of_run = {} if spent is None else {"replica_minutes": spent, "regret": regret}
    said = msgspec.to_builtins(found) | {
        "gap": best / found.lower - 1 if best and found.lower else None,
        "scenario": chosen.name,
        "seed": chosen.seed,
        "events": sent.events,
        "simulated_replica_minutes": judged.replica_minutes if judged else None,
        "simulated_in_sla": judged.in_sla if judged else None,
        **of_run,
    }
    if as_json:
        print_json(said)
        return
    table = Table(box=None, show_header=False, title=f"{scenario}, seed {chosen.seed}: {count(sent.events)} events")
    table.add_column(style="dim")
    table.add_column()
    rows = {
        "optimum": found.why or f"{minutes(best)} replica-minutes, {count(found.late)} events late",
        "simulated": f"{minutes(judged.replica_minutes)}, {share(judged.in_sla)} in time" if judged else "no schedule",
        "no schedule keeps the promise below": minutes(found.lower),
        "or keeps every event in time below": minutes(found.lower_none_late),
        "by": found.method,
        "found in": duration(found.wall_s),
    }
    if of_run:
        rows["the run itself"] = f"{minutes(spent)}" + (
            f", {over(regret)} over the optimum" if regret is not None else ""
        )
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def say_live_only(scenarios: "Iterable[Question]") -> None:
    """Name on standard error the faults of each that change nothing in a simulation."""
    from loadgen.faults import not_simulated  # noqa: PLC0415

    for one in scenarios:
        if live_only := not_simulated(one.load.faults):
            Console(stderr=True).print(f"{one.name}: load.faults: {live_only}", highlight=False, soft_wrap=True)


def _asked(what: str, trace: Path | None, changes: dict[str, Any]) -> "tuple[Question, Sent, float | None, bool]":
    """Return the world and the events of a scenario, a trace or a run; of a run also its cost, and if it is kept."""
    from bench.replay.measured import measure  # noqa: PLC0415  as above
    from bench.replay.recorded import read_run  # noqa: PLC0415
    from bench.replay.world import best_of  # noqa: PLC0415
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    if Path(what).is_dir():
        recorded = read_run(Path(what))
        return *best_of(recorded, measure(recorded)), recorded.result.replica_minutes, recorded.result.kept
    if Path(what).suffix in TRACES and trace is None:
        what, trace = "w1", Path(what)
    chosen, played = load_scenario_with(what, trace, changes)
    return chosen, sent_by(chosen, played), None, False


def _with_optimum(result: "SimulationResult", scenario: "Question", sent: "Sent") -> "SimulationResult":
    """Return the result with the optimum of its events beside it, where that is known."""
    from bench.simulation.optimum import optimum_beside  # noqa: PLC0415  as above

    with _looking(sent.events):
        found, said = optimum_beside(scenario, sent)
    if said := said or (found.why if found else ""):
        Console(stderr=True).print(f"no optimum beside it: {said}", highlight=False, soft_wrap=True)
    if found is None:
        return result
    return msgspec.structs.replace(
        result, optimum_replica_minutes=found.optimum_replica_minutes, optimum_lower=found.lower
    )


def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Folder of a run that is over and has its report.")],
    *,
    policy: Annotated[
        str | None, typer.Option(help="Simulate this one instead of the run's own; see `tailpack list policies`.")
    ] = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Feed the simulator with a run's own events and measured times, and compare: does live equal simulated?

    The distributions of both latencies are drawn into the run's folder.
    """
    from bench.replay.replay import PLOT, draw  # noqa: PLC0415  compiled code only where it is needed
    from bench.replay.replay import replay as replay_run  # noqa: PLC0415

    found, live_us, simulated_us = replay_run(folder, parse_changes(changes, **{"autoscaler.policy": policy}))
    draw(found, live_us, simulated_us, folder / PLOT)
    Console(stderr=True).print(f"written: {folder / PLOT}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(found)
        return
    console = Console()
    console.print(side_by_side(found))
    console.print(measured_in(found.measured), style="dim", highlight=False, soft_wrap=True)


def side_by_side(found: "Replayed") -> Table:
    """Return live, simulated, difference and verdict of each figure."""
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
    for name, (key, words, difference, how, limit) in rows.items():
        apart = found.differences[difference]
        verdict = f"{'within' if found.within[key] else 'more than'} {limit}" if same and limit else ""
        sides = [words(getattr(side, key)) for side in (found.live, found.simulated)]
        table.add_row(name, *sides, UNKNOWN if apart is None else how.format(apart), verdict)
    return table


def measured_in(measured: "Measured") -> str:
    """Return in words what the simulator was fed with."""
    known = {
        "μ": f"{measured.service_rate:.1f} events/s",
        "way through the broker": duration(measured.transit_s),
        "pause of a moved partition": f"{duration(measured.pause_s)} (seen {measured.pauses} times)",
        "notice of a move": duration(measured.notice_s),
        "start-up": duration(measured.startup_s),
        "stop": duration(measured.stop_s),
        "age of commits": duration(measured.commit_age_s),
        "from commit to commit": duration(measured.commit_interval_s),
        "ticks after whole intervals": duration(measured.tick_offset_s),
        "replicas at the start": f"{measured.initial_replicas}",
    }
    return "measured in the run: " + ", ".join(f"{name} {value}" for name, value in known.items())


def figures_of(result: "SimulationResult", scenario: "Question") -> Table:
    """Return the figures, a line each."""
    table = Table(box=None, show_header=False, title=f"{result.scenario}, {result.policy}, seed {result.seed}")
    table.add_column(style="dim")
    table.add_column(justify="right")
    rows = {
        "events": count(result.events),
        f"within {scenario.target.latency_target_s:g} s": share(result.in_sla),
        **{name: duration(getattr(result, key)) for name, key in LATENCIES.items()},
        "replica-minutes": minutes(result.replica_minutes),
        "per-second packing": minutes(result.packing_replica_minutes),
        "optimum": _optimum_in_words(result),
        "regret": over(result.regret),
        **{name: count(getattr(result, key)) for name, key in COUNTS.items()},
        "simulated in": f"{duration(result.wall_s)}, {duration(result.policy_s)} of it the policy",
    }
    if result.lost or result.duplicates:
        rows["lost, duplicates"] = f"{result.lost}, {result.duplicates}"
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _simulate_chain(scenario: "Question", sent: "Sent", out: Path | None, *, as_json: bool) -> None:
    """Simulate a scenario with stages, and show each of them under the whole."""
    from bench.simulation.chain import run_chain  # noqa: PLC0415  as above

    if out is not None:
        raise TailpackError(f"--out: {scenario.name} has stages, and a folder takes the run of one group")
    found = run_chain(scenario, sent)[2]
    if as_json:
        print_json(found)
        return
    Console().print(figures_of_chain(found))


def figures_of_chain(found: "ChainResult", before: str = "") -> Table:
    """Return a line for each stage, and one for the whole."""
    way = "as one" if found.coordinated else "each stage by itself"
    title = f"{before}{found.scenario}, {way}, seed {found.seed}: {share(found.in_sla)} in time from end to end"
    table = Table("", "events", "in W", "p99.9", "worst", "r-m", "most replicas", "plan changes", box=None, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for one in found.stages:
        table.add_row(one.stage, *_latency_and_cost(one), str(one.peak_replicas), str(one.plan_changes))
    table.add_row("end to end", *_latency_and_cost(found))
    return table


def _latency_and_cost(one: "ChainResult | StageResult") -> tuple[str, ...]:
    return count(one.events), share(one.in_sla), duration(one.p999_s), duration(one.max_s), minutes(one.replica_minutes)


def _optimum_in_words(result: "SimulationResult") -> str:
    best, least = result.optimum_replica_minutes, result.optimum_lower
    return UNKNOWN if best is None or least is None else f"{minutes(best)}, none below {minutes(least)}"


@contextmanager
def _looking(events: int) -> Iterator[None]:
    """Say what takes so long."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"looking for the optimum of {count(events)} events; known ones are kept"):
        yield


@contextmanager
def _progress(events: int) -> Iterator[Callable[[int], None] | None]:
    """Show how far a run has come, where somebody sees it and it takes long enough."""
    console = Console(stderr=True)
    if not console.is_terminal or events < LONG_RUN_EVENTS:
        yield None
        return
    columns = TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=events)
        yield lambda more: progress.advance(task, more)
