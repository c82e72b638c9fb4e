"""`tailpack simulate` and `tailpack replay`: a scenario, a trace or a run that is over, in numbers, not processes."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tailpack.cli.options import AsJson, Changes, Policy, Scenario, Seed, parse_changes, print_json
from tailpack.local.places import free_for_run
from tailpack.provenance import command

if TYPE_CHECKING:
    from bench.replay.measured import Measured
    from bench.replay.side_by_side import Replayed
    from bench.scenario import Scenario as Question
    from bench.simulation.result import SimulationResult

LONG_RUN_EVENTS: Final = 500_000
"""About from where on a run takes a second."""


def simulate(
    scenario: Scenario,
    *,
    policy: Policy = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="CSV file, `second,events` or `second,p0,p1,…`, that replaces the scenario's rate and duration; its "
            "columns p0, p1, … also partitions and split. Events lie evenly in their second, or by --set "
            "spacing=poisson."
        ),
    ] = None,
    seed: Seed = None,
    changes: Changes = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="New folder that takes the run: every event, and the journal."),
    ] = None,
) -> None:
    """Run a scenario in the simulator and show what came of it: seconds instead of minutes, nothing is started."""
    from bench.scenario import load_scenario  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent import read_trace, sent_by  # noqa: PLC0415

    asked = parse_changes(changes, policy=policy, seed=seed)
    chosen = load_scenario(scenario, ({"load.spacing": "smooth"} if trace else {}) | asked)
    if out is not None:
        free_for_run(out)
    sent = sent_by(chosen, read_trace(trace) if trace else None)
    with _progress(sent.events) as passed:
        run, result = run_scenario(chosen, sent, keep_events=out is not None, passed=passed)
    if trace:
        result = msgspec.structs.replace(result, scenario=trace.name)
        said = f"{trace.name}: events {chosen.load.spacing} within each second; --set spacing=… changes that"
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    if out is not None:
        from bench.simulation.folder import write_run  # noqa: PLC0415
        from tailpack.provenance import describe_simulated  # noqa: PLC0415

        written = write_run(out, run, describe_simulated(chosen, sent, run.drained_us, out))
        said = f"written: {written}; its report: tailpack report {shlex.quote(str(written))}"
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    if as_json:
        print_json(msgspec.to_builtins(result) | {"regret": result.regret})
    else:
        Console().print(figures_of(result, chosen))


def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Folder of a run that is over and has its report.")],
    *,
    policy: Annotated[
        str | None, typer.Option(help="Simulate this one instead of the run's own; see `tailpack policies`.")
    ] = None,
    changes: Changes = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder that takes the simulated run; `tailpack report compare` takes both.")
    ] = None,
) -> None:
    """Feed the simulator with a run's own events and measured times, and compare: does live equal simulated?

    The distributions of both latencies are drawn into the run's folder.
    """
    from bench.replay.replay import PLOT  # noqa: PLC0415  compiled code and matplotlib only where they are needed
    from bench.replay.replay import replay as replay_run  # noqa: PLC0415
    from bench.replay.side_by_side import draw  # noqa: PLC0415

    if out is not None:
        free_for_run(out)
    told = parse_changes(changes) | ({} if policy is None else {"autoscaler.policy": policy})
    found, live_us, simulated_us = replay_run(folder, told, kept=out, command=command())
    title = f"{found.run}: live {found.live_policy}, simulated {found.policy}"
    draw(live_us, simulated_us, folder / PLOT, title=title, latency_target_s=found.latency_target_s)
    Console(stderr=True).print(f"written: {folder / PLOT}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(found)
        return
    console = Console()
    console.print(side_by_side(found))
    console.print(measured_in(found.measured), style="dim", highlight=False, soft_wrap=True)


def side_by_side(found: "Replayed") -> Table:
    """Return live, simulated, difference and verdict of each figure."""
    live, simulated, difference = found.live, found.simulated, found.differences
    same = found.policy == found.live_policy
    title = f"{found.run}, " + (found.policy if same else f"live {found.live_policy}, simulated {found.policy}")
    table = Table("", "live", "simulated", "difference", "", box=None, title=title)
    for column in table.columns[1:4]:
        column.justify = "right"
    table.add_row(
        f"within {found.latency_target_s:g} s",
        f"{100 * live.in_sla:.3f} %",
        f"{100 * simulated.in_sla:.3f} %",
        f"{difference.in_sla_points:+.3f} points",
        _verdict(found.within.in_sla, "0.5 points") if same else "",
    )
    table.add_row(
        "replica-minutes",
        f"{live.replica_minutes:.2f}",
        f"{simulated.replica_minutes:.2f}",
        f"{100 * difference.replica_minutes_share:+.2f} %",
        _verdict(found.within.replica_minutes, "3 %") if same else "",
    )
    for name, key in (("p50", "p50_s"), ("p99", "p99_s"), ("p99.9", "p999_s"), ("worst", "max_s")):
        values = [getattr(side, key) for side in (live, simulated)]
        table.add_row(name, *[f"{value:.3f} s" for value in values], f"{getattr(difference, key):+.3f} s", "")
    for name, key in (
        ("scaled up", "scale_ups"),
        ("scaled down", "scale_downs"),
        ("reassigned", "reassignments"),
        ("partitions moved", "moved_partitions"),
    ):
        counts = [getattr(side, key) for side in (live, simulated)]
        change = getattr(difference, key)
        table.add_row(
            name, *["–" if n is None else f"{n}" for n in counts], "–" if change is None else f"{change:+d}", ""
        )
    return table


def measured_in(measured: "Measured") -> str:
    """Return in words what the simulator was fed with."""
    known = {
        "μ": f"{measured.service_rate:.1f} events/s",
        "way through the broker": _milliseconds(measured.transit_s),
        "pause of a moved partition": f"{_milliseconds(measured.pause_s)} (seen {measured.pauses} times)",
        "notice of a move": _milliseconds(measured.notice_s),
        "start-up": _milliseconds(measured.startup_s),
        "stop": _milliseconds(measured.stop_s),
        "age of commits": _milliseconds(measured.commit_age_s),
        "from commit to commit": _milliseconds(measured.commit_interval_s),
        "ticks after whole intervals": _milliseconds(measured.tick_offset_s),
        "replicas at the start": f"{measured.initial_replicas}",
    }
    return "measured in the run: " + ", ".join(f"{name} {value}" for name, value in known.items())


def _milliseconds(value_s: float | None) -> str:
    return "unknown" if value_s is None else f"{1e3 * value_s:.1f} ms"


def _verdict(good: bool, limit: str) -> str:
    return f"within {limit}" if good else f"more than {limit}"


def figures_of(result: "SimulationResult", scenario: "Question") -> Table:
    """Return the figures, a line each."""
    target_s = scenario.target.latency_target_s
    table = Table(box=None, show_header=False, title=f"{result.scenario}, {result.policy}, seed {result.seed}")
    table.add_column(style="dim")
    table.add_column(justify="right")
    rows = {
        "events": f"{result.events:,}",
        f"within {target_s:g} s": f"{100 * result.in_sla:.3f} %",
        **{
            name: "–" if value is None else f"{value:.3f} s"
            for name, value in (
                ("p50", result.p50_s),
                ("p99", result.p99_s),
                ("p99.9", result.p999_s),
                ("worst", result.max_s),
            )
        },
        "replica-minutes": f"{result.replica_minutes:.2f}",
        "bound": f"{result.bound_replica_minutes:.2f}",
        "regret": f"{100 * result.regret:+.1f} %",
        "scaled up, down": f"{result.scale_ups}, {result.scale_downs}",
        "reassigned": f"{result.reassignments}",
        "partitions moved": f"{result.moved_partitions}",
        "simulated in": f"{result.wall_s:.2f} s, {result.policy_s:.2f} s of it the policy",
    }
    if result.lost or result.duplicates:
        rows["lost, duplicates"] = f"{result.lost}, {result.duplicates}"
    for name, value in rows.items():
        table.add_row(name, value)
    return table


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
