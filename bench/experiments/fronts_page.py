"""The fronts in Markdown: where tail-aware is beaten, how opponents were tuned, every player, the targets, and what
each number of the policy changes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bench.experiments.fronts import FILE, FrontFigures
from bench.experiments.goals import ENOUGH, Checked, by_world, checked
from bench.experiments.opponents import OURS
from bench.experiments.sensitivity import FILE as SENSITIVITY_FILE
from bench.experiments.sensitivity import SensitivityFigures
from bench.experiments.tables import against
from bench.experiments.tuning import FILE as TUNED_FILE
from bench.experiments.tuning import RULE, TunedFigures
from bench.markdown import Columns, in_columns, known, sources
from bench.results import DecisionRow, LiveRow, load
from report.wording import share

NOTHING: Final = 5e-4
"""A change in cost that is less than this is none."""
Line = tuple[FrontFigures, Sequence[FrontFigures]]
"""Ours in a world, and all players there."""


def _player(row: FrontFigures | None) -> str:
    return f"{row.player}: {share(row.in_sla)}, {row.replica_minutes:.1f}" if row else "nobody"


def _cheapest(rows: Sequence[FrontFigures], in_sla: float, *, ordered: bool = True) -> str:
    keeping = [row for row in rows if row.in_sla >= in_sla and row.player != OURS.name and row.ordered is ordered]
    return _player(min(keeping, key=lambda row: row.replica_minutes, default=None))


def _in_sla(row: FrontFigures) -> str:
    return f"{share(row.in_sla)} ({share(row.least_in_sla)})"


SUMMARY: Final[Columns] = {
    "world": lambda one: one[0].world,
    "seeds": lambda one: str(max(row.seeds for row in one[1])),
    f"{OURS.name}: in SLA (least seed)": lambda one: _in_sla(one[0]),
    "r-m": lambda one: f"{one[0].replica_minutes:.1f}",
    "× optimum": lambda one: known(one[0].over_optimum, 1, ".3f"),
    "changes": lambda one: f"{one[0].plan_changes:.0f}",
    "moves": lambda one: f"{one[0].moved:.0f}",
    "cheapest other that keeps as many": lambda one: _cheapest(one[1], one[0].in_sla),
    "cheapest other with 99.9 %": lambda one: _cheapest(one[1], ENOUGH),
    "cheapest share group that keeps as many": lambda one: _cheapest(one[1], one[0].in_sla, ordered=False),
}
PLAYERS: Final[Columns] = {
    "player": lambda row: row.player,
    "in SLA (least seed)": _in_sla,
    "r-m": lambda row: f"{row.replica_minutes:.2f}",
    f"points more than {OURS.name}": lambda row: against(row.in_sla_difference, 100, ".3f"),
    f"r-m more than {OURS.name}": lambda row: against(row.replica_minutes_difference, 1, ".2f"),
    "changes": lambda row: f"{row.plan_changes:.0f}",
    "moves": lambda row: f"{row.moved:.0f}",
    "beaten by": lambda row: row.beaten_by or "–",
}
TUNED: Final[Columns] = {
    "opponent": lambda row: row.opponent,
    "best setting": lambda row: (
        ", ".join(f"{key.removeprefix('policy.')}={value}" for key, value in row.settings.items()) or "as it comes"
    ),
    "× the cheapest": lambda row: f"{row.times_best:.3f}",
    "worlds with 99.9 %": lambda row: f"{row.kept} of {row.worlds}",
    "settings tried": lambda row: "",
}


def said(one: Checked) -> str:
    """Return whether a target was reached, in a word."""
    return "not known" if one.reached is None else "yes" if one.reached else "**no**"


TARGETS: Final[Columns] = {
    "where": lambda row: row.where,
    "target": lambda row: row.target,
    "reached": lambda row: row.figure,
    "": said,
}


def _beaten(ours: FrontFigures, by: FrontFigures) -> str:
    points, cost = against(by.in_sla_difference, 100, ".3f"), against(by.replica_minutes_difference, 1, ".2f")
    return f"{ours.world} (by {by.player}: points {points}, r-m {cost})"


def summary() -> str:
    """Return where tail-aware is beaten, then a line for each world."""
    found = load(FILE, FrontFigures)
    worlds = by_world([row.result for row in found])
    lines = [(players[OURS.name], list(players.values())) for players in worlds.values() if OURS.name in players]
    ours = [row for row, _ in lines]
    beaten = [_beaten(row, worlds[row.world][row.beaten_by]) for row in ours if row.beaten_by]
    pooled = [_beaten(row, worlds[row.world][row.beaten_by_share_group]) for row in ours if row.beaten_by_share_group]
    text = f"**`{OURS.name}` is beaten in {len(beaten)} of {len(ours)} worlds**: {'; '.join(beaten) or 'none'}.\n\n"
    if any(not row.ordered for _, rows in lines for row in rows):
        text += f"**By share groups, which keep no order, in {len(pooled)}**: {'; '.join(pooled) or 'none'}.\n\n"
    return text + in_columns(SUMMARY, lines, (row.origin for row in found))


def every_player() -> str:
    """Return for each world a table of all players, collapsed."""
    found = load(FILE, FrontFigures)
    parts = []
    for name, players in by_world([row.result for row in found]).items():
        rows = sorted(players.values(), key=lambda row: (-row.in_sla, row.replica_minutes))
        one = rows[0]
        optimum = "not known"
        if one.optimum_replica_minutes is not None:
            optimum = f"{one.optimum_replica_minutes:.2f} r-m, no schedule below {one.optimum_lower:.2f}"
        parts += [f"<details><summary>{name}</summary>", "", f"Optimum: {optimum}.", "", in_columns(PLAYERS, rows)]
        parts += ["</details>", ""]
    return "\n".join(parts) + "\n" + sources(row.origin for row in found)


def tuning() -> str:
    """Return by which rule the one setting of each opponent was chosen, and which it is."""
    found = load(TUNED_FILE, TunedFigures)
    chosen = [row.result for row in found if row.result.chosen]
    tried = {row.opponent: sum(one.result.opponent == row.opponent for one in found) for row in chosen}
    columns = {**TUNED, "settings tried": lambda row: str(tried[row.opponent])}
    return f"{RULE}\n\n" + in_columns(columns, chosen, (row.origin for row in found))


def targets() -> str:
    """Return every target and what was reached."""
    found = load(FILE, FrontFigures)
    live = [row.result for row in load("live", LiveRow)]
    decisions = [row.result for row in load("decisions", DecisionRow)]
    rows = list(checked(by_world([row.result for row in found]), live, decisions))
    return in_columns(TARGETS, rows, (row.origin for row in found))


def _changes(row: SensitivityFigures | None) -> str:
    if row is None:
        return "it fails"
    if row.dearest - 1 < NOTHING and abs(row.cost - 1) < NOTHING:
        return f"{row.other}: nothing"
    most = f", {row.dearest - 1:+.1%} in {row.dearest_world}" if row.dearest - 1 >= NOTHING else ""
    return f"{row.other}: {row.cost - 1:+.2%}{most}; {100 * row.in_sla:+.3f} points"


def sensitivity() -> str:
    """Return what each number in tail-aware changes, those first that change most."""
    found = load(SENSITIVITY_FILE, SensitivityFigures)
    by_number: dict[tuple[str, str], dict[float, SensitivityFigures]] = {}
    for row in found:
        by_number.setdefault((row.result.file, row.result.name), {})[row.result.factor] = row.result

    def weight(of: Mapping[float, SensitivityFigures]) -> float:
        return max(max(abs(row.cost - 1), row.dearest - 1) for row in of.values())

    lines = sorted(by_number.values(), key=weight, reverse=True)
    columns: Columns = {
        "number": lambda of: "`{0.name}`, {0.file}".format(next(iter(of.values()))),
        "value": lambda of: next(iter(of.values())).value,
        "× 0.8": lambda of: _changes(of.get(0.8)),
        "× 1.2": lambda of: _changes(of.get(1.2)),
    }
    return in_columns(columns, lines, (row.origin for row in found))


FRONT_TABLES: Final[dict[str, Callable[[], str]]] = {
    "fronts": summary,
    "fronts-tuned": tuning,
    "fronts-worlds": every_player,
    "targets": targets,
    "sensitivity": sensitivity,
}
