"""Tables of Markdown files, made from the committed figures; never typed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.experiments.tables import EXPERIMENT_TABLES
from bench.handover.show import HANDOVER_TABLES
from bench.live_tables import live, live_simulated
from bench.results import KafkaReportRow, ProcessRow, ServiceRateRow, SparkRow, StartupRow, load, table
from studies.packing.claims import PACKING_TABLES
from studies.paper.tables import PAPER_TABLES
from studies.speed_tables import SPEED_TABLES


def service_rate() -> str:
    """Return μ_eff of the payment runtime."""
    rows = [
        (
            f"{1e3 * row.service_time_s:g} ms",
            f"{row.service_rate:.1f}/s",
            f"{row.share_of_ideal:.3f}",
            f"{1e3 * row.cpu_per_event_s:.2f} ms",
            f"{row.peak_mib:.0f}",
        )
        for row in load(ServiceRateRow)
    ]
    return table(
        ("service time", "μ_eff", "of 1/service time", "CPU per event", "peak PSS, MiB"),
        rows,
        (row.origin for row in load(ServiceRateRow)),
    )


def processes() -> str:
    """Return CPU and memory of each process under steady loads."""
    found = load(ProcessRow)
    loads = sorted({(row.topology, row.rate) for row in found}, reverse=True)
    by_name: dict[str, dict[tuple[str, int], ProcessRow]] = {}
    for row in found:
        by_name.setdefault(row.name, {})[row.topology, row.rate] = row
    rows = [(name, *(_usage(cells.get(one)) for one in loads)) for name, cells in by_name.items()]
    totals = [[row for row in found if (row.topology, row.rate) == one] for one in loads]
    rows.append(
        (
            "together",
            *(f"{sum(row.cores for row in rows):.2f} / {sum(row.peak_mib for row in rows):.0f}" for rows in totals),
        )
    )
    header = ("cores / peak PSS MiB", *(f"{topology}, {rate}/s" for topology, rate in loads))
    return table(header, rows, (row.origin for row in found))


def startup() -> str:
    """Return when each step of the demo was reached."""
    rows = [(row.step, f"{row.at_s:.1f}") for row in load(StartupRow)]
    return table(("step", "seconds after the command"), rows, (row.origin for row in load(StartupRow)))


def spark_kafka() -> str:
    """Return the speed of the report from Kafka."""
    found = load(KafkaReportRow)
    rows = [
        (f"{row.events:,}", f"{row.wall_s:.1f}", f"{row.events_per_s:,.0f}", f"{row.peak_mib:,.0f}") for row in found
    ]
    return table(("events", "wall, s", "events/s", "peak PSS, MiB"), rows, (row.origin for row in found))


def spark() -> str:
    """Return the report's speed by the size of the run."""
    found = load(SparkRow)
    rows = [
        (
            f"{row.events:,}",
            f"{row.wall_s:.1f}",
            f"{row.events_per_s:,.0f}",
            f"{row.peak_rss_gib:.2f}",
            f"{100 * (1 - row.in_sla):.2f}",
        )
        for row in found
    ]
    return table(("events", "wall, s", "events/s", "peak, GiB", "of them late, %"), rows, (row.origin for row in found))


TABLES: Final[dict[str, Callable[[], str]]] = {  # of docs/results.md
    "live": live,
    "live-simulated": live_simulated,
    "service-rate": service_rate,
    "processes": processes,
    "startup": startup,
    "spark-kafka": spark_kafka,
    "spark": spark,
}
EVERY_TABLE: Final = TABLES | EXPERIMENT_TABLES | HANDOVER_TABLES | PACKING_TABLES | PAPER_TABLES | SPEED_TABLES


def renew(text: str) -> str:
    """Return `text` with every table between its markers made anew: <!-- table: NAME --> … <!-- end -->.

    Raises ValueError for a name that is not in EVERY_TABLE.
    """
    pattern = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    unknown = {found["name"] for found in pattern.finditer(text)} - set(EVERY_TABLE)
    if unknown:
        raise ValueError(f"no table is called {', '.join(sorted(unknown))}; known are {', '.join(EVERY_TABLE)}")
    return pattern.sub(lambda found: found[1] + EVERY_TABLE[found["name"]]() + found[3], text)


def renew_file(path: Path) -> bool:
    """Renew the tables of a Markdown file; return whether anything changed."""
    before = path.read_text(encoding="utf-8")
    after = renew(before)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


def _usage(row: ProcessRow | None) -> str:
    return f"{row.cores:.2f} / {row.peak_mib:.0f}" if row else "–"
