"""A comparison of packers on a terminal."""

from rich.console import Console
from rich.table import Column, Table

from studies.packing.result import Comparison, Study
from studies.packing.words import median, not_dominated, plus_minus, share


def show(comparison: Comparison, console: Console) -> None:
    """Print each study, the latency model, then the paper's claims with their verdicts."""
    for study in comparison.studies:
        _show_study(study, console)
    _show_latency(comparison, console)
    table = Table("claim", "published", "ours", "verdict", "why, or how", box=None, title=comparison.source)
    for claim in comparison.claims:
        table.add_row(claim.claim, claim.published, claim.ours, claim.verdict, claim.why)
    console.print(table)


def _show_study(study: Study, console: Console) -> None:
    title = f"{study.partitions} partitions, δ = {study.delta}: {study.streams} streams, {study.iterations} iterations"
    table = Table(_packer(), "Rscore", "forced", "CBS %", "moved", "front", box=None, title=title)
    for point in study.points:
        table.add_row(
            point.packer,
            plus_minus(point.rscore),
            plus_minus(point.forced_rscore),
            plus_minus(point.cbs, 100),
            plus_minus(point.moved),
            "●" if point.front else "○" if point.front_of_twelve else "",
        )
    console.print(table)
    goal = study.goal
    found = goal.packer or "no setting of keep-in-place"
    console.print(
        "front: ● of all, ○ of the twelve alone\n"
        f"at MWF's consumers: {found}, Rscore {share(goal.share_of_mwf)} of MWF's (asked for {share(goal.target)}, "
        f"forced by overflow {share(goal.forced_share_of_mwf)}); of the twelve not dominated: {not_dominated(goal)}\n",
        highlight=False,
    )


def _show_latency(comparison: Comparison, console: Console) -> None:
    study = comparison.latency
    title = f"latency model: {study.partitions} partitions, δ = {study.delta}, {study.streams} streams"
    table = Table(_packer(), "consumers", "p90 of delayed, s", "delayed %", "mean, ms", "p90, s", box=None, title=title)
    for row in study.rows:
        table.add_row(
            row.packer,
            plus_minus(row.consumers),
            median(row.p90_delayed_s),
            plus_minus(row.share_delayed, 100),
            plus_minus(row.mean_s, 1e3),
            plus_minus(row.p90_s),
        )
    console.print(table)


def _packer() -> Column:
    return Column("packer", no_wrap=True)
