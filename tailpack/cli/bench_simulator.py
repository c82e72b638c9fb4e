"""`tailpack bench simulator` and `tailpack bench packing`: how fast the core's inner loops are, and how that grows."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from bench import figures

if TYPE_CHECKING:
    from bench.simulator_speed import SpeedRow

app = typer.Typer()

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Into = Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures.")]


@app.command()
def simulator(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Without the largest runs, which take minutes: within 50 s.")
    ] = False,
    as_json: AsJson = False,
    into: Into = None,
) -> None:
    """Events that the simulator serves per second of one core: by size of the run and of the group, and as a whole."""
    from bench.simulator_speed import measure_all  # noqa: PLC0415  the compiler only where it is needed
    from tailpack.cli.bench import origin  # noqa: PLC0415  which registers this command

    console = Console(stderr=True)
    with console.status("serving"):
        found = measure_all(quick=quick, report=lambda row: console.print(_line(row), highlight=False))
    if into:
        rows = [figures.SimulatorRow(**msgspec.structs.asdict(row), origin=origin()) for row in found.growth]
        figures.save(rows, figures.SimulatorRow, into)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    heads = ("events", "partitions", "replicas", "wall, s", "processor, s", "of it policy", "events/s", "peak, MB")
    table = Table("measured", *heads, box=None)
    for row in found.growth:
        table.add_row(
            row.measured,
            f"{row.events:,}",
            f"{row.partitions:,}",
            str(row.replicas),
            f"{row.wall_s:.2f}",
            f"{row.process_s:.2f}",
            f"{row.policy_s:.2f}" if row.policy_s else "–",
            f"{row.events_per_s:,.0f}",
            "–" if row.peak_mb is None else f"{row.peak_mb:,.0f}",
        )
    Console().print(table)


@app.command()
def packing(*, as_json: AsJson = False, into: Into = None) -> None:
    """Milliseconds that each packer takes, by number of partitions; ten partitions to a consumer."""
    from studies.packing_speed import PackingSpeedFigures, measure_all  # noqa: PLC0415
    from tailpack.cli.bench import origin  # noqa: PLC0415

    console = Console(stderr=True)
    with console.status("packing"):
        found = measure_all()
    by_packer: dict[str, dict[int, float]] = {}
    for row in found.rows:
        by_packer.setdefault(row.packer, {})[row.partitions] = row.milliseconds
    if into:
        rows = [PackingSpeedFigures(**msgspec.structs.asdict(row), origin=origin()) for row in found.rows]
        figures.save(rows, PackingSpeedFigures, into)
    if as_json:
        sys.stdout.write(msgspec.json.encode({"milliseconds": by_packer, "rows": found.rows}).decode() + "\n")
        return
    sizes = sorted({row.partitions for row in found.rows})
    table = Table("packer, ms", *(f"{size:,} partitions" for size in sizes), box=None)
    for packer, milliseconds in by_packer.items():
        table.add_row(packer, *(f"{milliseconds[size]:.3f}" for size in sizes))
    Console().print(table)


def _line(row: "SpeedRow") -> str:
    return f"{row.measured}: {row.events:,} events, {row.partitions:,} partitions: {row.events_per_s:,.0f} events/s"
