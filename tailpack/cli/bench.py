"""`tailpack bench`: measure this machine, and keep the figures that docs/results.md shows."""

import datetime
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import figures
from bench.figures import LiveRow, Origin, ProcessRow, StartupRow
from bench.scenario import load_scenario
from report.result import Result
from report.run_info import RunInfo
from tailpack import provenance
from tailpack.cli import bench_live as live_cli
from tailpack.cli import bench_report as report_bench_cli
from tailpack.cli import bench_simulator as simulator_cli
from tailpack.cli import bench_targets as targets_cli
from tailpack.cli import handover as handover_cli
from tailpack.run import Options, Run

app = typer.Typer(
    no_args_is_help=True, help="Measure this machine. Figures go to bench/reference, tables to docs/results.md."
)
app.add_typer(handover_cli.app)
app.add_typer(live_cli.app)
app.add_typer(simulator_cli.app)
app.add_typer(targets_cli.app)
app.add_typer(report_bench_cli.app)

Out = Annotated[Path, typer.Option("--out", help="Folder that takes a folder for each run.")]
Into = Annotated[Path, typer.Option("--into", help="Folder that takes the figures.")]


@app.command()
def processes(
    rates: Annotated[str, typer.Option(help="Events/s, separated by commas.")] = "150,350",
    out: Out = Path("out"),
    into: Into = figures.FOLDER,
) -> None:
    """Measure CPU and memory of every process under steady loads, through the whole pipeline and payment-only."""
    rows: list[ProcessRow] = []
    for topology in ("pipeline", "payment-only"):
        for rate in rates.split(","):
            folder = run_scenario(f"steady-{rate}", {"topology": topology}, out)
            rows += process_rows(folder, int(rate))
            figures.save(rows, ProcessRow, into)


@app.command()
def startup(out: Out = Path("out"), into: Into = figures.FOLDER) -> None:
    """Time each step of a (second) start, from the command to the report of a short run."""
    phases = RunInfo.load(run_scenario("smoke", {}, out)).phases_s
    figures.save([StartupRow(step=step, at_s=at_s, origin=origin()) for step, at_s in phases.items()], StartupRow, into)


@app.command("service-rate")
def service_rate(
    events: Annotated[int, typer.Option(help="Size of the standing backlog.")] = 4000, into: Into = figures.FOLDER
) -> None:
    """What one Payment replica sustains with a standing backlog (μ_eff), at two service times."""
    from tailpack.service_rate import measure  # noqa: PLC0415

    console = Console()
    rows = [measure(service_time_s, events, origin(), console) for service_time_s in (0.005, 0.02)]
    for row in rows:
        console.print(
            f"{1e3 * row.service_time_s:g} ms: {row.service_rate:.1f} events/s, {row.share_of_ideal:.3f} of the ideal, "
            f"{1e3 * row.cpu_per_event_s:.2f} ms CPU per event",
            highlight=False,
        )
    figures.save(rows, figures.ServiceRateRow, into)


@app.command("tables")
def tables(
    file: Annotated[Path, typer.Argument(help="Markdown file with table markers.")] = Path("docs/results.md"),
) -> None:
    """Write the tables of a Markdown file anew from the committed figures."""
    from studies.tables import renew_file  # noqa: PLC0415

    Console().print(f"{file}: {'renewed' if renew_file(file) else 'up to date'}", highlight=False)


@app.command("plot")
def plot(file: Annotated[Path, typer.Argument(help="SVG file to write.")] = Path("docs/handover.svg")) -> None:
    """Draw the comparison of runtimes from the committed figures."""
    from bench.handover.plot import draw  # noqa: PLC0415

    draw([row for row in figures.load(figures.HandoverRow) if row.steps == "mixed"], file)
    Console().print(f"{file}: drawn", highlight=False)


@app.command("all")
def everything(out: Out = Path("out")) -> None:
    """All that is quick: service-rate, startup, report, processes. `live` takes hours and is asked for by name."""
    service_rate(events=4000, into=figures.FOLDER)
    startup(out=out, into=figures.FOLDER)
    report_bench_cli.report(events=1_000_000, source="kafka", into=figures.FOLDER)
    report_bench_cli.report(into=figures.FOLDER)
    processes(rates="150,350", out=out, into=figures.FOLDER)


def live_row(result: Result) -> LiveRow:
    """Return the row that stands for a run."""
    return LiveRow(
        scenario=result.scenario,
        policy=result.policy,
        seed=result.seed,
        events=result.events,
        in_sla=result.in_sla,
        p50_s=result.p50_s,
        p99_s=result.p99_s,
        p999_s=result.p999_s,
        max_s=result.max_s,
        replica_minutes=result.replica_minutes,
        scale_ups=result.scale_ups,
        scale_downs=result.scale_downs,
        reassignments=result.reassignments,
        lost=result.lost,
        lateness_p99_s=result.lateness.p99_s,
        valid=result.valid,
        origin=origin(),
    )


def process_rows(folder: Path, rate: int) -> list[ProcessRow]:
    """Return what each process of the run in `folder` used."""
    from tailpack.local.resources import load_usages  # noqa: PLC0415

    topology = RunInfo.load(folder).topology
    return [
        ProcessRow(
            rate=rate,
            topology=topology,
            name=usage.name,
            cores=round(usage.cores, 3),
            peak_mib=round(usage.peak_mib, 1),
            origin=origin(),
        )
        for usage in load_usages(folder / "processes.json")
        if not usage.name.startswith("spark")
    ]


def origin() -> Origin:
    """Return where and how this is being measured."""
    return Origin(
        command=_command(sys.argv[1:]),
        commit=provenance.commit(),
        machine=provenance.machine(),
        measured_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


def _command(arguments: Sequence[str]) -> str:
    return shlex.join(["tailpack", *arguments])


def run_scenario(scenario: str, overrides: dict[str, object], out: Path) -> Path:
    """Run a scenario, say its verdict, return its folder."""
    console = Console()
    options = Options(out=out, command=_command(sys.argv[1:]))
    folder = Run(load_scenario(scenario, overrides), options, console).execute()
    console.print(Result.load(folder).verdict, highlight=False, soft_wrap=True)
    return folder
