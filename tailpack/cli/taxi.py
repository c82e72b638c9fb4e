"""`tailpack taxi`: New York's trip records become a trace. `tailpack bench taxi`: how fast that is."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from bench.taxi.months import parse_month
from bench.taxi.outcome import RULES, Outcome
from bench.taxi.request import Request, parse_speed
from contracts.validation import InvalidSettingsError
from tailpack.cli import bench as bench_cli
from tailpack.errors import TailpackError

app = typer.Typer()

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
T = TypeVar("T")
MEANINGS: Final = {
    "unreadable": "a time is missing, or none",
    "other_month": "picked up outside the month",
    "backwards": "dropped off before picked up",
    "distance": "distance missing, negative or above --max-miles",
    "fare": "fare missing, negative or above --max-fare",
    "duplicate": "the same trip again",
}


@app.command()
def taxi(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES", help="Trip records, .parquet, .csv or .csv.gz: files, folders, or addresses."),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", help="CSV file that takes the trace.")],
    speed: Annotated[str, typer.Option(help="Seconds of the records that become one of the trace.")] = "40",
    partitions: Annotated[int, typer.Option(help="Columns of the trace; 1 states the total alone.")] = 1,
    by: Annotated[
        Literal["uniform", "zone"], typer.Option(help="Spread trips evenly, or by where they began: real skew.")
    ] = "uniform",
    events: Annotated[Literal["both", "pickup", "dropoff"], typer.Option(help="Which ends of a trip count.")] = "both",
    month: Annotated[str, typer.Option(metavar="YYYY-MM", help="Instead of the month in the files' names.")] = "",
    duration_s: Annotated[int | None, typer.Option(help="Keep only the first seconds of the trace.")] = None,
    max_miles: Annotated[float | None, typer.Option(help="Drop trips of no, negative or longer distance.")] = None,
    max_fare: Annotated[float | None, typer.Option(help="Drop trips of no, negative or higher fare.")] = None,
    master: Annotated[str, typer.Option(help="Spark master; local[*] uses every core.")] = "local[2]",
    as_json: AsJson = False,
) -> None:
    """Make a trace for `tailpack simulate --trace` of New York's taxi trip records; see docs/taxi.md."""
    from bench.taxi.build import build  # noqa: PLC0415
    from report.spark import ReportError  # noqa: PLC0415  Spark only where it is needed
    from report.spark.session import end_jvm  # noqa: PLC0415

    console = Console(stderr=True)
    began = time.monotonic()
    request = Request(
        speed=_read("--speed", parse_speed, speed),
        partitions=partitions,
        by=by,
        ends=events,
        month=_read("--month", parse_month, month) if month else None,
        duration_s=duration_s,
        max_miles=max_miles,
        max_fare=max_fare,
    )
    try:
        with console.status("Spark reads the trip records"):
            outcome = build(files, out, request, master)
    except ReportError as wrong:
        raise TailpackError(str(wrong)) from wrong
    finally:
        end_jvm()
    console.print(table_of(outcome))
    console.print(f"trace: {out}", highlight=False, soft_wrap=True)
    if as_json:
        figures = {"trace": str(out), **asdict(outcome), "wall_s": round(time.monotonic() - began, 2)}
        sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")


@bench_cli.app.command("taxi")
def bench(
    *,
    rows: Annotated[int, typer.Option(help="Rows of the made-up month.")] = 15_000_000,
    form: Annotated[Literal["parquet", "csv"], typer.Option("--format", help="Form of its file.")] = "parquet",
    generation: Annotated[Literal["zones", "coordinates"], typer.Option(help="Columns since mid-2016, or before.")] = (
        "zones"
    ),
    as_json: AsJson = False,
) -> None:
    """Wall time, CPU time and memory of `tailpack taxi --by zone` on a made-up month; its file is kept."""
    from tailpack.taxi_bench import measure  # noqa: PLC0415

    row = measure(rows, form, generation, Console(stderr=True))
    if as_json:
        sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
    else:
        Console().print(
            f"{row.rows:,} rows in {row.wall_s:.1f} s, {row.cpu_s:.1f} s of CPU, {row.peak_rss_gib:.2f} GiB; "
            f"{sum(row.dropped.values()):,} dropped",
            highlight=False,
        )


def table_of(outcome: Outcome) -> Table:
    """Return the figures, a line each."""
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    table.add_row("records", f"{outcome.rows:,}", "")
    for rule in RULES:
        if count := getattr(outcome.dropped, rule):
            table.add_row(f"  dropped: {rule.replace('_', ' ')}", f"{count:,}", MEANINGS[rule])
    table.add_row("trips", f"{outcome.trips:,}", "")
    table.add_row("events", f"{outcome.events:,}", f"{outcome.outside:,} more lie after the end of the trace")
    table.add_row("seconds", f"{outcome.duration_s:,}", f"at most {outcome.largest:,} events in one")
    if outcome.partitions > 1:
        share = f"the busiest has {100 * outcome.hottest_share:.1f} % of the events"
        table.add_row("partitions", f"{outcome.partitions:,}", share)
    return table


def _read(option: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as wrong:
        raise InvalidSettingsError([f"{option}: {wrong}"]) from wrong
