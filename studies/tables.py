"""Tables of Markdown files, made from the committed figures; never typed."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from bench.experiments.tables import EXPERIMENT_TABLES
from bench.handover.show import HANDOVER_TABLES
from bench.results import (
    KafkaReportRow,
    LiveRow,
    ProcessRow,
    ServiceRateRow,
    SimulatorRow,
    SparkRow,
    StartupRow,
    known,
    load,
    table,
)
from contracts.validation import InvalidSettingsError
from studies.packing.claims import PACKING_TABLES
from studies.packing_speed import PackingSpeedFigures
from studies.paper.tables import PAPER_TABLES
from studies.published import CLOSER_2024


def live() -> str:
    """Return for each scenario and policy the mean over its runs, with the least and the most."""
    rows = []
    for (scenario, policy), runs in _by_policy(load(LiveRow)):
        paper = CLOSER_2024.get((scenario, policy))
        printed = f"{100 * paper.in_sla:.1f} / {paper.replica_minutes}" if paper else "–"
        printed += f", {paper.scale_ups}/{paper.scale_downs}" if paper and paper.scale_ups is not None else ""
        median = [_mean([getattr(row, name) for row in runs]) for name in ("p50_s", "p99_s", "p999_s")]
        worst = max((row.max_s for row in runs if row.max_s is not None), default=None)
        milliseconds = " / ".join(known(value, 1e3, ",.0f") for value in (*median, worst))
        actions = [
            _mean([getattr(row, name) for row in runs]) for name in ("scale_ups", "scale_downs", "reassignments")
        ]
        invalid = sum(not row.valid for row in runs)
        rows.append(
            (
                f"{scenario}, {policy} ({len(runs)})" + (f" ({invalid} invalid)" if invalid else ""),
                _spread([100 * row.in_sla for row in runs], ".3f"),
                milliseconds,
                _spread([row.replica_minutes for row in runs], ".2f"),
                "/".join(known(value, 1, ".0f") for value in actions),
                printed,
            )
        )
    header = (
        "scenario, policy (runs)",
        "in SLA %",
        "p50 / p99 / p99.9 / max, ms",
        "r-m",
        "ups/downs/reassigns",
        "paper: in SLA % / r-m, ups/downs",
    )
    return table(header, rows, (row.origin for row in load(LiveRow)))


def live_simulated() -> str:
    """Return for each scenario and policy how far the simulation of its runs' own events is from them."""
    rows, found = [], [row for row in load(LiveRow) if row.simulated is not None]
    for (scenario, policy), runs in _by_policy(found):
        again = [row.simulated for row in runs if row.simulated is not None]
        rows.append(
            (
                f"{scenario}, {policy} ({len(runs)})",
                f"{100 * sum(row.in_sla for row in runs) / len(runs):.3f}",
                f"{100 * sum(one.in_sla for one in again) / len(again):.3f}",
                f"{max((one.in_sla_points for one in again), key=abs):+.3f}",
                known(_mean([row.replica_minutes for row in runs]), 1, ".2f"),
                f"{sum(one.replica_minutes for one in again) / len(again):.2f}",
                f"{100 * max((one.replica_minutes_share for one in again), key=abs):+.2f}",
            )
        )
    header = (
        "scenario, policy (runs)",
        "live: in SLA %",
        "simulated",
        "largest difference, points",
        "live: r-m",
        "simulated",
        "largest difference, %",
    )
    return table(header, rows, (row.origin for row in found))


def _by_policy(found: Sequence[LiveRow]) -> Iterator[tuple[tuple[str, str], list[LiveRow]]]:
    def name(row: LiveRow) -> tuple[str, str]:
        return row.scenario, row.policy

    for key, runs in groupby(sorted(found, key=name), key=name):
        yield key, list(runs)


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _spread(values: Sequence[float | None], how: str) -> str:
    """Return the mean, and where there are several its least and most: three runs are too few for an interval."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "–"
    mean = format(sum(numbers) / len(numbers), how)
    return mean if len(numbers) == 1 else f"{mean} ({format(min(numbers), how)} … {format(max(numbers), how)})"


def simulator() -> str:
    """Return how fast the simulator is, and how that grows."""
    found = load(SimulatorRow)
    rows = [
        (
            row.measured,
            f"{row.events:,}",
            f"{row.partitions:,}",
            str(row.replicas),
            f"{row.process_s:.2f}",
            f"{row.events_per_s:,.0f}",
            f"{row.policy_s:.2f}",
            known(row.peak_mb, 1, ",.0f"),
        )
        for row in found
    ]
    header = ("measured", "events", "partitions", "replicas", "processor, s", "events/s", "its policy, s", "peak, MB")
    return table(header, rows, (row.origin for row in found))


def packing_speed() -> str:
    """Return how long each packer takes, and how that grows."""
    found = load(PackingSpeedFigures)
    sizes = sorted({(row.partitions, row.consumers) for row in found})
    by_packer: dict[str, dict[int, float]] = {}
    for row in found:
        by_packer.setdefault(row.packer, {})[row.partitions] = row.milliseconds
    rows = [(packer, *(f"{milliseconds[size]:.2f}" for size, _ in sizes)) for packer, milliseconds in by_packer.items()]
    header = ("ms", *(f"{size:,} × {consumers:,}" for size, consumers in sizes))
    return table(header, rows, (row.origin for row in found))


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


RESULTS_TABLES: Final[dict[str, Callable[[], str]]] = {
    "live": live,
    "live-simulated": live_simulated,
    "service-rate": service_rate,
    "processes": processes,
    "startup": startup,
    "spark-kafka": spark_kafka,
    "spark": spark,
}
"""Of docs/results.md."""
SPEED_TABLES: Final[dict[str, Callable[[], str]]] = {"simulator": simulator, "packing-speed": packing_speed}
EVERY_TABLE: Final = RESULTS_TABLES | SPEED_TABLES | EXPERIMENT_TABLES | HANDOVER_TABLES | PACKING_TABLES | PAPER_TABLES


def renew(text: str) -> str:
    """Return `text` with every table between its markers made anew: <!-- table: NAME --> … <!-- end -->.

    Raises InvalidSettingsError for a name that is not in EVERY_TABLE.
    """
    pattern = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    unknown = {found["name"] for found in pattern.finditer(text)} - set(EVERY_TABLE)
    if unknown:
        raise InvalidSettingsError(
            [f"no table is called {', '.join(sorted(unknown))}; known: {', '.join(EVERY_TABLE)}"]
        )
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
