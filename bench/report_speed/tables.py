"""Tables of how fast the report is, how that grows, and what answers the same questions faster."""

from collections.abc import Callable
from typing import Final

from bench.figures import SparkRow, load
from bench.markdown import known, table


def spark() -> str:
    """Return the report's speed by the size of the run."""
    found = load(SparkRow)
    rows = [
        (
            f"{row.events:,}",
            f"{row.wall_s:.1f}",
            f"{row.events_per_s:,.0f}",
            f"{row.peak_rss_gib:.2f}",
            known(row.whole_wall_s, 1, ".1f"),
            known(row.whole_peak_rss_gib, 1, ".2f"),
            f"{100 * (1 - row.in_sla):.2f}",
        )
        for row in found
    ]
    first, whole = "percentiles, share, series, causes", "whole report"
    header = (
        "events",
        f"{first}: wall, s",
        "events/s",
        "peak, GiB",
        f"{whole}: wall, s",
        "peak, GiB",
        "of them late, %",
    )
    return table(header, rows, (row.origin for row in found))


def spark_against() -> str:
    """Return who answers the same questions in which time: seconds, and GiB at the peak."""
    found = [row for row in load(SparkRow) if row.against]
    engines = list(dict.fromkeys(f"{one.engine} {one.version}" for row in found for one in row.against))
    rows = []
    for row in found:
        beside = {f"{one.engine} {one.version}": f"{one.wall_s:.1f} / {one.peak_rss_gib:.2f}" for one in row.against}
        spark_alone = (known(row.wall_without_causes_s, 1, ".1f"), f"{row.wall_s:.1f} / {row.peak_rss_gib:.2f}")
        rows.append((f"{row.events:,}", *(beside.get(engine, "–") for engine in engines), *spark_alone))
    header = ("s / peak GiB, events", *engines, "Spark, the same (s)", "Spark, and late events by cause")
    return table(header, rows, (row.origin for row in found))


REPORT_SPEED_TABLES: Final[dict[str, Callable[[], str]]] = {"spark-against": spark_against}
