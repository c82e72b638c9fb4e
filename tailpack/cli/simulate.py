"""`tailpack simulate`: a scenario or a trace under a policy, in numbers instead of processes."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tailpack.cli.overrides import parse_overrides

if TYPE_CHECKING:
    from bench.scenario import Scenario
    from bench.simulation.result import SimulationResult

app = typer.Typer()

LONG_RUN_EVENTS: Final = 500_000
"""About from where on a run takes a second."""


@app.command()
def simulate(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Name (see `tailpack scenarios`) or path of a TOML file.")
    ],
    *,
    policy: Annotated[str | None, typer.Option(help="Instead of the scenario's; see `tailpack policies`.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="CSV file, `second,events` or `second,p0,p1,…`, that replaces the scenario's rate and duration. "
            "Its columns p0, p1, … also replace partitions and split."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the load and of all that is random; equal seeds, equal runs.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Put a value over the scenario's: split=random, spacing=poisson, rebalance_time_s=2, delivery=eager, "
            "startup_s=gke, policy.OPTION=VALUE; see the sections of a scenario file.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder that takes the run: every event, and the journal; `tailpack report` reports on it."),
    ] = None,
) -> None:
    """Run a scenario in the simulator and measure it: seconds instead of minutes, nothing is started."""
    from bench.scenario import load_scenario  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent import read_trace, sent_by  # noqa: PLC0415

    named = {"autoscaler.policy": policy, "seed": seed}
    chosen = load_scenario(scenario, parse_overrides(changes or ()) | {k: v for k, v in named.items() if v is not None})
    sent = sent_by(chosen, read_trace(trace) if trace else None)
    with _progress(sent.events) as passed:
        run, result = run_scenario(chosen, sent, keep_events=out is not None, passed=passed)
    if out is not None:
        from bench.simulation.folder import write_run  # noqa: PLC0415
        from tailpack.provenance import describe_simulated  # noqa: PLC0415

        written = write_run(out, run, describe_simulated(chosen, sent, run.drained_us, out))
        Console(stderr=True).print(
            f"written: {written}; its report: tailpack report {shlex.quote(str(written))}",
            highlight=False,
            soft_wrap=True,
        )
    if as_json:
        figures = msgspec.to_builtins(result) | {"regret": result.regret}
        sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
    else:
        Console().print(table_of(result, chosen))


def table_of(result: "SimulationResult", scenario: "Scenario") -> Table:
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
