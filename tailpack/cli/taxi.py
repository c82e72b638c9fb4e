"""`tailpack taxi`: New York's trip records become a trace."""

import time
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from contracts.validation import InvalidSettingsError
from tailpack.cli.options import AsJson, Master, print_json
from tailpack.errors import TailpackError


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
    master: Master = "local[2]",
    as_json: AsJson = False,
) -> None:
    """Make a trace for `tailpack simulate --trace` of New York's taxi trip records; see docs/taxi.md."""
    from bench.taxi.trace import Request, build  # noqa: PLC0415  Spark only where it is needed
    from bench.taxi.trips import parse_month  # noqa: PLC0415
    from report.spark import ReportError  # noqa: PLC0415
    from report.spark.session import end_jvm  # noqa: PLC0415

    console = Console(stderr=True)
    began = time.monotonic()
    try:
        factor = Fraction(speed).limit_denominator(1000)
        of_files = parse_month(month) if month else None
    except (ValueError, ZeroDivisionError) as wrong:
        raise InvalidSettingsError([f"--speed or --month: {wrong}"]) from wrong
    try:
        with console.status("Spark reads the trip records"):
            outcome = build(files, out, Request(factor, partitions, by, events, of_files, duration_s), master)
    except ReportError as wrong:
        raise TailpackError(str(wrong)) from wrong
    finally:
        end_jvm()
    dropped = ", ".join(f"{count:,} {rule.replace('_', ' ')}" for rule, count in outcome.dropped.items() if count)
    console.print(
        f"{outcome.trips:,} trips of {outcome.rows:,} records ({dropped or 'none'} dropped): {outcome.events:,} events "
        f"in {outcome.duration_s:,} s, at most {outcome.largest:,} in one; the busiest partition has "
        f"{100 * outcome.hottest_share:.1f} %\ntrace: {out}",
        highlight=False,
        soft_wrap=True,
    )
    if as_json:
        figures = {"trace": str(out), **asdict(outcome), "wall_s": round(time.monotonic() - began, 2)}
        print_json(figures)
