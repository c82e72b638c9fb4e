"""What happened when: plans, handovers and failures of a run in one list, each with the words that explain it."""

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from report.result import DecisionMade, HeatMap, LateEpisode, Result

PLANS_SHOWN: Final = 300
"""Plans that a page lists; of more, those that moved the most partitions."""
EPISODES_SHOWN: Final = 300
"""Late-event episodes that a page lists; of more, the largest."""
Tenures = dict[int, list[tuple[float, str]]]
"""Partition → since when, and who served it from then on."""
ACTIONS: Final = frozenset({"up", "down", "reassign"})


@dataclass(frozen=True, slots=True)
class Happening:
    """A moment of the run, in seconds since its start."""

    at_s: float
    kind: str
    """up, down, reassign, other (plans), handover or failure."""
    words: str = ""
    made: DecisionMade | None = None
    """The plan, which the page tells elsewhere."""


def happenings(result: Result, held: Tenures) -> list[Happening]:
    """Return everything that happened, by time."""
    plans = [
        Happening(made.at_s, made.action if made.action in ACTIONS else "other", made=made) for made in result.decisions
    ]
    failures = [
        Happening(one.at_s, "failure", f"{one.replica} {one.change}" + (f" ({one.detail})" if one.detail else ""))
        for one in result.failures
    ]
    return sorted([*plans, *_handovers(held), *failures], key=lambda one: one.at_s)


def decisions_shown(result: Result) -> list[DecisionMade]:
    """Return the decisions that the page lists, by time."""
    largest = sorted(result.decisions, key=lambda made: -made.moved)[:PLANS_SHOWN]
    return sorted(largest, key=lambda made: made.at_s)


def episodes_shown(result: Result) -> list[LateEpisode]:
    """Return the late-event episodes that the page lists, by time."""
    largest = sorted(result.tail.episodes, key=lambda one: -one.events)[:EPISODES_SHOWN] if result.tail else []
    return sorted(largest, key=lambda one: (one.from_s, one.partition or 0))


def tenures(heat: HeatMap | None) -> Tenures:
    """Return who served each partition since when, as far as the heat map shows it."""
    found: Tenures = {partition: [] for partition in heat.partitions} if heat else {}
    for partition, owners in zip(heat.partitions, heat.owners, strict=False) if heat else ():
        since = found[partition]
        for cell, owner in enumerate(owners):
            if heat and owner is not None and (not since or owner != since[-1][1]):
                since.append((cell * heat.cell_s, owner))
    return found


def several_named(partitions: list[int]) -> str:
    """Return "partition 3", "partitions 4, 5"."""
    return ("partition " if len(partitions) == 1 else "partitions ") + ", ".join(map(str, partitions))


def _handovers(held: Tenures) -> list[Happening]:
    """Return the changes of owner that the heat map shows, those of one moment together."""
    changes = sorted(
        (at_s, before, after, partition)
        for partition, since in held.items()
        for (_, before), (at_s, after) in pairwise(since)
    )
    found = []
    for at_s, some in groupby(changes, key=lambda change: change[0]):
        words = [
            f"{before} → {after}: {several_named([one[3] for one in moved])}"
            for (_, before, after), moved in groupby(some, key=lambda change: change[:3])
        ]
        found.append(Happening(at_s, "handover", f"handover {'; '.join(words)}"))
    return found
