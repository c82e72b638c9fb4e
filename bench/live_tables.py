"""Live runs: each policy's beside the paper's figures, and beside the simulation of the same events."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from bench.published import CLOSER_2024
from bench.results import LiveRow, known, load, table


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
