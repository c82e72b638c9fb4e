"""Tables of measured figures in Markdown, with the commands that made the figures below; renewed in place."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.results import (
    DecisionRow,
    Kept,
    LiveRow,
    LiveScaleRow,
    LoadgenRow,
    Origin,
    PipelineRow,
    ProcessRow,
    ServiceRateRow,
    SparkRow,
    SpeedRow,
    StartupRow,
    load,
)
from contracts.validation import InvalidSettingsError
from report.wording import minutes, share

Columns = Mapping[str, Callable[[Any], str]]
"""Header of a column → what stands in it for a result, or for whatever a row is about."""
LISTED: Final = 3
"""Commands that are named one by one; of more, which differ in an option each, the first stands for all."""


def table(header: Iterable[str], rows: Iterable[Iterable[str]], origins: Iterable[Origin] = ()) -> str:
    """Return a table; under it, once each, where its figures come from."""
    header = list(header)
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join(lines) + "\n\n" + sources(origins)


def in_columns(columns: Columns, rows: Iterable[Any], origins: Iterable[Origin] = ()) -> str:
    """Return the table that has these columns, and a line for each of `rows`."""
    return table(columns, cells(columns, rows), origins)


def cells(columns: Columns, rows: Iterable[Any]) -> list[list[str]]:
    """Return what stands in each column for each of `rows`."""
    return [[cell(row) for cell in columns.values()] for row in rows]


def sources(origins: Iterable[Origin]) -> str:
    """Return one line for each command that made the figures; one for all where they are many."""
    found = sorted({msgspec.structs.astuple(one) for one in origins})
    if len(found) <= LISTED:
        return "".join(
            f"`{command}`, commit {commit}, {machine}, {day}{f', in {wall_s} s' if wall_s else ''}  \n"
            for command, commit, machine, day, wall_s in found
        )
    commits, machines, days = ("; ".join(sorted({one[place] for one in found})) for place in (1, 2, 3))
    return (
        f"`{found[0][0]}` and {len(found) - 1} commands like it, commits {commits}, {machines}, {days}; "
        "each row of bench/reference names its own  \n"
    )


def known(value: float | None, times: float, how: str) -> str:
    """Return the value in another unit, – where there is none."""
    return "–" if value is None else format(times * value, how)


def _mean(rows: Sequence[Any], name: str) -> float | None:
    """Return the mean of a figure over the rows that have it."""
    values = [value for row in rows if (value := getattr(row, name)) is not None]
    return sum(values) / len(values) if values else None


def _spread(rows: Sequence[Any], name: str, said: Callable[[float | None], str]) -> str:
    """Return the mean, and where there are several its least and most: three runs are too few for an interval."""
    values = [value for row in rows if (value := getattr(row, name)) is not None]
    average = said(_mean(rows, name))
    return average if len(values) < 2 else f"{average} ({said(min(values))} … {said(max(values))})"


def _runs(runs: Sequence[LiveRow]) -> str:
    invalid = sum(not row.valid for row in runs)
    what = ", ".join((runs[0].scenario, *runs[0].settings, runs[0].policy))
    return f"{what} ({len(runs)})" + (f" ({invalid} invalid)" if invalid else "")


def _lengths(runs: Sequence[LiveRow], *means: str, worst: str, times: float = 1e3, how: str = ",.0f") -> str:
    """Return means over the runs, and the most of one more figure."""
    most = max((value for row in runs if (value := getattr(row, worst)) is not None), default=None)
    return " / ".join(known(one, times, how) for one in (*(_mean(runs, name) for name in means), most))


LIVE: Final[Columns] = {
    "scenario, policy (runs)": _runs,
    "in SLA": lambda runs: _spread(runs, "in_sla", share),
    "p50 / p99 / p99.9 / max, ms": lambda runs: _lengths(runs, "p50_s", "p99_s", "p999_s", worst="max_s"),
    "r-m": lambda runs: _spread(runs, "replica_minutes", minutes),
    "ups/downs/reassigns": lambda runs: "/".join(
        known(_mean(runs, name), 1, ".0f") for name in ("scale_ups", "scale_downs", "reassignments")
    ),
}
PODS: Final[Columns] = {
    "partitions moved": lambda runs: known(_mean(runs, "moved_partitions"), 1, ".0f"),
    "start p50 / max, s": lambda runs: _lengths(runs, "start_p50_s", worst="start_max_s", times=1, how=".2f"),
    "pause p99 / max, ms": lambda runs: _lengths(runs, "pause_p99_s", worst="pause_max_s"),
}
"""What a run of pods says besides: what starts and handovers took."""
SERVICE_RATE: Final[Columns] = {
    "service time": lambda row: f"{1e3 * row.service_time_s:g} ms",
    "μ_eff": lambda row: f"{row.service_rate:.1f}/s",
    "of 1/service time": lambda row: f"{row.share_of_ideal:.3f}",
    "CPU per event": lambda row: f"{1e3 * row.cpu_per_event_s:.2f} ms",
    "peak PSS, MiB": lambda row: f"{row.peak_mib:.0f}",
}
STARTUP: Final[Columns] = {
    "step": lambda row: row.step,
    "seconds after the command": lambda row: f"{row.at_s:.1f}",
}
SPARK: Final[Columns] = {
    "events": lambda row: f"{row.events:,}",
    "wall, s": lambda row: f"{row.wall_s:.1f}",
    "events/s": lambda row: f"{row.events_per_s:,.0f}",
    "peak, GiB": lambda row: f"{row.peak_rss_gib:.2f}",
    "of them late, %": lambda row: f"{100 * (1 - row.in_sla):.2f}",
}
SIMULATOR: Final[Columns] = {
    "measured": lambda row: row.measured,
    "events": lambda row: f"{row.events:,}",
    "partitions": lambda row: f"{row.partitions:,}",
    "replicas": lambda row: f"{row.replicas}",
    "processor, s": lambda row: f"{row.process_s:.2f}",
    "events/s": lambda row: f"{row.events_per_s:,.0f}",
    "its policy, s": lambda row: f"{row.policy_s:.2f}",
    "peak, MB": lambda row: known(row.peak_mb, 1, ",.0f"),
}
DECISIONS: Final[Columns] = {
    "partitions × replicas": lambda row: f"{row.partitions:,} × {row.replicas:,}",
    "arrivals": lambda row: row.arrivals,
    "`algorithm-2`, ms": lambda row: f"{row.ms['algorithm-2']:.1f}",
    "`tail-aware`, ms": lambda row: f"{row.ms['tail-aware']:.1f}",
}
LOADGEN: Final[Columns] = {
    "by, processes": lambda row: f"{row.entry}, {row.workers}",
    "events/s, evenly": lambda row: f"{row.rate_per_s}",
    "within 2 ms": lambda row: share(row.within_2ms),
    "p99 late, ms": lambda row: f"{1e3 * row.lateness_p99_s:.1f}",
    "at once: within 2 ms": lambda row: share(row.bursts_within_2ms),
    "sustained, events/s": lambda row: f"{row.max_rate_per_s:,} for {row.sustained_s:.0f} s",
    "on time, events/s": lambda row: f"{row.on_time_per_s:,}",
}
PIPELINE: Final[Columns] = {
    "stage": lambda row: row.stage,
    "instances": lambda row: str(row.instances),
    "partitions": lambda row: str(row.partitions),
    "orders/s": lambda row: f"{row.orders_per_s:,.0f}",
    "cores": lambda row: f"{row.cores:.2f}",
    "CPU per order, ms": lambda row: f"{row.ms_per_order:.2f}",
}
LIVE_SCALE: Final[Columns] = {
    "members × partitions": lambda row: f"{row.members:,} × {row.partitions:,}" + (" (invalid)" if row.problem else ""),
    "first plan, s": lambda row: known(row.first_plan_s, 1, ".1f"),
    "plan taken: median / max, s": lambda row: " / ".join(
        known(one, 1, ".2f") for one in (row.plan_taken_s, row.plan_taken_max_s)
    ),
    "tick: median / max, ms": lambda row: " / ".join(known(one, 1e3, ",.0f") for one in (row.tick_s, row.tick_max_s)),
    "members' requests/s": lambda row: known(row.requests_per_s, 1, ",.0f"),
    "cores: broker / controller / members": lambda row: " / ".join(
        known(one, 1, ".2f") for one in (row.broker_cores, row.controller_cores, row.members_cores)
    ),
    "journal, MB a day": lambda row: known(row.journal_mb_per_day, 1, ",.0f"),
}


def live(more: Columns | None = None, name: str = "live", kind: type[LiveRow] = LiveRow) -> str:
    """Return for each scenario and policy the mean over its runs, with the least and the most.

    more: columns, too. name: of the file that has the rows, which are of `kind`.
    """
    found: list[Kept[LiveRow]] = [row for row in load(name, kind) if not row.result.load_workers]
    return in_columns({**LIVE, **(more or {})}, _by_policy(found), (row.origin for row in found))


def simulated_beside(side: str) -> str:
    """Return for each scenario and policy how far the simulator is from its live runs. side: simulated or forecast."""
    rows = (row for row in load("live", LiveRow) if not row.result.load_workers)
    found = [row for row in rows if getattr(row.result, side) is not None]

    def mean(runs: Sequence[LiveRow], name: str) -> float | None:
        return _mean([getattr(row, side) for row in runs], name)

    def furthest(runs: Sequence[LiveRow], name: str) -> float:
        return float(max((getattr(getattr(row, side), name) for row in runs), key=abs))

    columns: Columns = {
        "scenario, policy (runs)": _runs,
        "live: in SLA": lambda runs: share(_mean(runs, "in_sla")),
        f"{side}: in SLA": lambda runs: share(mean(runs, "in_sla")),
        "largest difference, points": lambda runs: f"{furthest(runs, 'in_sla_points'):+.3f}",
        "live: r-m": lambda runs: minutes(_mean(runs, "replica_minutes")),
        f"{side}: r-m": lambda runs: minutes(mean(runs, "replica_minutes")),
        "largest difference": lambda runs: f"{furthest(runs, 'replica_minutes_share'):+.2%}",
    }
    return in_columns(columns, _by_policy(found), (row.origin for row in found))


def shared_load() -> str:
    """Return what live runs came to whose load several processes shared, the simulator beside them."""

    def beside(side: str) -> Columns:
        def apart(row: LiveRow) -> str:
            found = getattr(row, side)
            return "–" if found is None else f"{found.in_sla_points:+.3f} points, {found.replica_minutes_share:+.2%}"

        return {f"{side}: in SLA, r-m": apart}

    columns: Columns = {
        "scenario, policy, seed": lambda row: (
            f"{row.scenario}, {row.policy}, {row.seed}" + " (invalid)" * (not row.valid)
        ),
        "workers": lambda row: f"{row.load_workers}",
        "p99 late, ms": lambda row: known(row.lateness_p99_s, 1e3, ".1f"),
        "events": lambda row: f"{row.events:,}",
        "in SLA": lambda row: share(row.in_sla),
        "r-m": lambda row: minutes(row.replica_minutes),
        **beside("simulated"),
        **beside("forecast"),
    }
    found = [row for row in load("live", LiveRow) if row.result.load_workers]
    return in_columns(columns, (row.result for row in found), (row.origin for row in found))


def _by_policy(found: Iterable[Kept[LiveRow]]) -> list[list[LiveRow]]:
    def name(row: LiveRow) -> tuple[str, tuple[str, ...], str]:
        return row.scenario, row.settings, row.policy

    return [list(runs) for _, runs in groupby(sorted((row.result for row in found), key=name), key=name)]


def processes() -> str:
    """Return CPU and memory of each process under steady loads."""
    found = load("processes", ProcessRow)
    used: dict[str, dict[tuple[str, int], list[ProcessRow]]] = {}
    for row in (one.result for one in found):
        for name in (row.name, "together"):
            used.setdefault(name, {}).setdefault((row.topology, row.rate), []).append(row)
    together = used.pop("together", {})
    loads = sorted(together, reverse=True)
    rows = [
        (name, *(_usage(own.get(one, ())) for one in loads)) for name, own in (*used.items(), ("together", together))
    ]
    header = ("cores / peak PSS MiB", *(f"{topology}, {rate}/s" for topology, rate in loads))
    return table(header, rows, (row.origin for row in found))


def _usage(rows: Sequence[ProcessRow]) -> str:
    return f"{sum(row.cores for row in rows):.2f} / {sum(row.peak_mib for row in rows):.0f}" if rows else "–"


def committed(name: str, kind: type[msgspec.Struct], columns: Columns) -> str:
    """Return the table of a file's results, in these columns."""
    found = load(name, kind)
    return in_columns(columns, (row.result for row in found), (row.origin for row in found))


MEASURED_TABLES: Final[dict[str, Callable[[], str]]] = {
    "live-simulated": partial(simulated_beside, "simulated"),
    "live-forecast": partial(simulated_beside, "forecast"),
    "service-rate": partial(committed, "service-rate", ServiceRateRow, SERVICE_RATE),
    "processes": processes,
    "startup": partial(committed, "startup", StartupRow, STARTUP),
    "spark": partial(committed, "spark", SparkRow, SPARK),
    "live-scale": partial(committed, "live-scale", LiveScaleRow, LIVE_SCALE),
    "live-shared": shared_load,
    "loadgen": partial(committed, "loadgen", LoadgenRow, LOADGEN),
    "pipeline": partial(committed, "pipeline", PipelineRow, PIPELINE),
    "simulator": partial(committed, "simulator", SpeedRow, SIMULATOR),
    "decisions": partial(committed, "decisions", DecisionRow, DECISIONS),
}


def renew(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return `text` with every table between its markers made anew: <!-- table: NAME --> … <!-- end -->.

    Raises InvalidSettingsError for a name that is not in `tables`.
    """
    pattern = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    unknown = {found["name"] for found in pattern.finditer(text)} - set(tables)
    if unknown:
        raise InvalidSettingsError([f"no table is called {', '.join(sorted(unknown))}; known: {', '.join(tables)}"])
    return pattern.sub(lambda found: found[1] + tables[found["name"]]() + found[3], text)


def renew_file(path: Path, tables: Mapping[str, Callable[[], str]]) -> bool:
    """Renew the tables of a Markdown file; return whether anything changed."""
    before = path.read_text(encoding="utf-8")
    after = renew(before, tables)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before
