"""`tailpack bench report`: how fast the report is, how that grows, and what answers the same questions faster."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bench import figures
from bench.figures import SparkRow
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from bench.report_speed.answer import Way
    from tailpack.report_speed import Measurement

app = typer.Typer()
GROWTH: Final = "100000,1000000,10000000,100000000"


@app.command()
def report(
    *,
    events: Annotated[int, typer.Option(min=1, help="Size of the made-up run.")] = 10_000_000,
    sizes: Annotated[str, typer.Option(help="Several sizes instead, separated by commas.")] = "",
    growth: Annotated[bool, typer.Option("--growth", help=f"--sizes {GROWTH}; the last takes minutes.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Time the whole report too, with every breakdown.")] = False,
    against: Annotated[str, typer.Option(help="Others that answer the same in the same run: pandas,duckdb.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="How often each answers, in turn; medians count.")] = 1,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    source: Annotated[
        Literal["parquet", "kafka"], typer.Option("--from", help="kafka: the whole report of a run on a broker.")
    ] = "parquet",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures.")] = None,
) -> None:
    """Wall time and memory of the Spark report on a made-up run, the start of the JVM included.

    Timed: percentiles, share in SLA, series by second and late events by cause. The run is made once and kept. Others
    answer the same without causes, and the command fails where one differs in one digit.
    """
    from tailpack import report_speed  # noqa: PLC0415  psutil and the jars only where something is measured

    if source == "kafka":
        _from_kafka(events, as_json=as_json, into=into)
        return
    asked = report_speed.read_sizes(GROWTH if growth else sizes or str(events))
    ways = report_speed.ways(whole=whole, against=[name for name in against.split(",") if name])
    console, rows = Console(stderr=True), []
    ended: KeyboardInterrupt | TailpackError | None = None
    for size in asked:
        measurement = report_speed.Measurement(size, master)
        try:
            _measure(measurement, ways * rounds, console)
        except (KeyboardInterrupt, TailpackError) as wrong:
            ended = wrong  # what was measured before it is kept
        if row := measurement.row(_origin()):
            rows.append(row)
            if into:
                _keep(row, into)
        if ended:
            break
    _show(rows, as_json=as_json)
    if ended:
        raise ended


def _measure(measurement: "Measurement", ways: list["Way"], console: Console) -> None:
    """Let everybody answer in turn."""
    from tailpack import report_speed  # noqa: PLC0415

    with _progress(measurement.events, console) as passed:
        folder = report_speed.ensure_input(measurement.events, passed)
    for way in ways:
        with console.status(f"{way}: {measurement.events:,} events"):
            took = measurement.take(way, folder, lambda said: console.print(said, highlight=False))
        gib = took.answer.peak_rss_bytes / report_speed.GIB
        console.print(f"{way}: {measurement.events:,} events in {took.wall_s:.1f} s, {gib:.2f} GiB", highlight=False)


@contextmanager
def _progress(events: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Show how far the making of the run has come."""
    columns = TextColumn("making the run, once"), BarColumn(), TextColumn("{task.percentage:.0f} %")
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=events)
        yield lambda more: progress.advance(task, more)


def _keep(row: SparkRow, into: Path) -> None:
    """Put the row among the committed ones; what this time was not asked for is not known any more."""
    others = [one for one in figures.load(SparkRow, into) if one.events != row.events]
    figures.save(sorted([*others, row], key=lambda one: one.events), SparkRow, into)


def _show(rows: list[SparkRow], *, as_json: bool) -> None:
    from tailpack.report_speed import as_json as readable  # noqa: PLC0415

    if as_json and rows:
        head = readable(rows[-1]) | ({"growth": [readable(row) for row in rows]} if len(rows) > 1 else {})
        sys.stdout.write(msgspec.json.encode(head).decode() + "\n")
    elif rows:
        Console().print(table_of(rows))


def table_of(rows: list[SparkRow]) -> Table:
    """Return a line for each way and size: wall time, memory, events per second."""
    table = Table("events", "who", "wall, s", "peak, GiB", "events/s", box=None)
    for row in rows:
        size = f"{row.events:,}"
        table.add_row(size, "Spark", f"{row.wall_s:.1f}", f"{row.peak_rss_gib:.2f}", f"{row.events_per_s:,.0f}")
        if row.whole_wall_s is not None and row.whole_peak_rss_gib is not None:
            table.add_row(size, "Spark, whole report", f"{row.whole_wall_s:.1f}", f"{row.whole_peak_rss_gib:.2f}", "")
        if row.wall_without_causes_s is not None:
            table.add_row(size, "Spark, without causes", f"{row.wall_without_causes_s:.1f}", "", "")
        for one in row.against:
            speed = f"{one.events_per_s:,.0f}"
            name = f"{one.engine} {one.version}, without causes"
            table.add_row(size, name, f"{one.wall_s:.1f}", f"{one.peak_rss_gib:.2f}", speed)
    return table


def _from_kafka(events: int, *, as_json: bool, into: Path | None) -> None:
    """The whole report of a run that lies on a broker of its own."""
    from bench.figures import KafkaReportRow  # noqa: PLC0415
    from tailpack.spark_bench import measure  # noqa: PLC0415

    row = measure(events, _origin(), Console(stderr=True))
    if into:
        kept = [one for one in figures.load(KafkaReportRow, into) if one.events != events]
        figures.save(sorted([*kept, row], key=lambda one: one.events), KafkaReportRow, into)
    if as_json:
        sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
        return
    Console().print(f"{row.events:,} events in {row.wall_s:.1f} s, {row.peak_mib:,.0f} MiB", highlight=False)


def _origin() -> figures.Origin:
    from tailpack.cli.bench import origin  # noqa: PLC0415  which registers this command

    return origin()
