"""What happened when: plans, handovers and failures of a run in one list, each with the words that explain it."""

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from report.result import DecisionMade, HeatMap, LateEpisode, Result
from report.wording import several

PLANS_EXPLAINED: Final = 2_000
"""Plans whose reason a page tells; of more, those that moved the most partitions."""
SPELLS_SHOWN: Final = 500
"""Spells of late events that a page lists; of more, the largest."""
Tenures = dict[int, list[tuple[float, str]]]
"""Partition → since when, and who served it from then on."""
KINDS: Final = ("up", "down", "reassign", "other", "handover", "failure")


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    """A moment of the run, in seconds since its start."""

    at_s: float
    kind: str
    """One of KINDS."""
    words: str
    """Empty for plans beyond PLANS_EXPLAINED."""


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A partition that was served by another replica from this cell of the heat map on."""

    at_s: float
    partition: int
    before: str
    after: str


def happenings(result: Result, held: Tenures) -> list[Happening]:
    """Return everything that happened, by time."""
    explained = set(map(id, decisions_shown(result)))
    plans = [
        Happening(
            made.at_s,
            made.action if made.action in KINDS else "other",
            _plan(made) if id(made) in explained else "",
        )
        for made in result.decisions
    ]
    failures = [
        Happening(one.at_s, "failure", f"{one.replica} {one.change}" + (f" ({one.detail})" if one.detail else ""))
        for one in result.failures
    ]
    return sorted([*plans, *_handovers(held), *failures])


def decisions_shown(result: Result) -> list[DecisionMade]:
    """Return the decisions that the page lists, by time."""
    if len(result.decisions) <= PLANS_EXPLAINED:
        return list(result.decisions)
    largest = sorted(result.decisions, key=lambda made: (-made.moved, made.at_s))[:PLANS_EXPLAINED]
    return sorted(largest, key=lambda made: made.at_s)


def spells_shown(result: Result) -> list[LateEpisode]:
    """Return the spells that the page lists, by time."""
    largest = sorted(result.tail.episodes, key=lambda spell: -spell.events)[:SPELLS_SHOWN] if result.tail else []
    return sorted(largest, key=lambda spell: (spell.from_s, spell.partition or 0))


def tenures(heat: HeatMap | None) -> Tenures:
    """Return who served each partition since when, as far as the heat map shows it."""
    found: Tenures = {}
    if heat is None:
        return found
    for partition, owners in zip(heat.partitions, heat.owners, strict=False):
        since: list[tuple[float, str]] = []
        for cell, owner in enumerate(owners):
            if owner is not None and (not since or owner != since[-1][1]):
                since.append((cell * heat.cell_s, owner))
        found[partition] = since
    return found


def owner_changes(held: Tenures) -> list[OwnerChange]:
    """Return every change of owner, by time."""
    changes = [
        OwnerChange(at_s, partition, before, after)
        for partition, since in held.items()
        for (_, before), (at_s, after) in pairwise(since)
    ]
    return sorted(changes, key=lambda change: (change.at_s, change.partition))


def _handovers(held: Tenures) -> list[Happening]:
    """Return the owner changes, those of one moment together."""
    found = []
    for at_s, some in groupby(owner_changes(held), key=lambda change: change.at_s):
        moved: dict[tuple[str, str], list[int]] = {}
        for change in some:
            moved.setdefault((change.before, change.after), []).append(change.partition)
        words = "; ".join(
            f"{before} → {after}: " + ("partition " if len(which) == 1 else "partitions ") + ", ".join(map(str, which))
            for (before, after), which in moved.items()
        )
        found.append(Happening(at_s, "handover", f"handover {words}"))
    return found


def _plan(made: DecisionMade) -> str:
    moved = f", moves {several(made.moved, 'partition')}" if made.moved else ""
    return f"{made.action}: {several(made.replicas, 'replica')}{moved} (plan {made.epoch}). {made.reason}"
