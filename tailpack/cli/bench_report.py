"""`tailpack bench report`: how fast the report is."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console

from bench import figures
from bench.figures import KafkaReportRow, SparkRow

app = typer.Typer()


@app.command()
def report(
    *,
    events: Annotated[int, typer.Option(min=1, help="Size of the made-up run.")] = 1_000_000,
    source: Annotated[Literal["parquet", "kafka"], typer.Option("--from", help="Where the run lies.")] = "parquet",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures.")] = None,
) -> None:
    """Wall time and memory of `tailpack report` on a made-up run, the start of the JVM included."""
    from tailpack import report_speed  # noqa: PLC0415  the simulator and psutil only where something is measured
    from tailpack.cli.bench import origin  # noqa: PLC0415  which registers this command

    console = Console(stderr=True)
    row: SparkRow | KafkaReportRow
    if source == "kafka":
        row = report_speed.from_kafka(events, origin(), console)
        memory = f"{row.peak_mib / 1024:.2f} GiB"
    else:
        row = report_speed.from_files(events, origin(), console)
        memory = f"{row.peak_rss_gib:.2f} GiB"
    if into:
        others = [one for one in figures.load(type(row), into) if one.events != events]
        figures.save(sorted([*others, row], key=lambda one: one.events), type(row), into)
    if as_json:
        sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
    else:
        Console().print(f"{events:,} events in {row.wall_s:.1f} s, {memory}", highlight=False)
