"""Live runs of a chain in pairs, each group scaled by itself and all as one, each run beside its simulation."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

from bench import markdown
from bench.experiments.chain import COLUMNS, ChainRow, side_by_side
from bench.results import load
from bench.simulation.chain import ChainResult

NAME: Final = "chain-live"
SCENARIOS: Final = ("chain-surge", "chain-demo")


class LiveWay(msgspec.Struct, frozen=True, kw_only=True):
    """A live run of one way to scale the groups."""

    live: ChainResult
    """From the intended time of an event until its last stage was done with it."""
    simulated: ChainResult
    """What the simulator says of the same events."""
    valid: bool
    """Whether the load was whole and on time; else the run proves nothing."""
    lateness_p99_s: float | None
    """Of sending: 99 % of the events were sent no later than this after their intended time."""
    repeated: int
    """Outputs of a stage for an order that had one, under the same id: events are served at least once."""


class ChainLiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pair of runs with one seed."""

    scenario: str
    """Its name; with that of a trace, where one was played."""
    seed: int
    """Of the load; odd: blind ran first, even: as one."""
    blind: LiveWay
    """Each group scaled by an autoscaler of its own, which promises its share."""
    as_one: LiveWay
    """All by one autoscaler."""

    @property
    def valid(self) -> bool:
        """Whether both runs are."""
        return self.blind.valid and self.as_one.valid


def question(row: ChainLiveRow) -> tuple[str, int]:
    """Return what a pair answers."""
    return row.scenario, row.seed


def compared(rows: Sequence[ChainLiveRow]) -> list[ChainRow]:
    """Return for each scenario how its valid pairs compare live, and simulated."""
    found = []
    for scenario, good, invalid in _by_scenario(rows):
        pairs = f"({len(good)}, {invalid} invalid)" if invalid else f"({len(good)})"
        for world in ("live", "simulated"):
            blind, as_one = ([getattr(getattr(one, way), world) for one in good] for way in ("blind", "as_one"))
            found.append(side_by_side(f"{scenario}, {world} {pairs}", (), blind, as_one))
    return found


STAGE_FIGURES: Final = (
    ("in its share of W, %", "in_sla", 100),
    ("p99.9, s", "p999_s", 1),
    ("peak, s", "max_s", 1),
    ("r-m", "replica_minutes", 1),
)


def stages(rows: Sequence[ChainLiveRow]) -> list[list[str]]:
    """Return for each scenario and stage its name and the means of what it came to live, blind → as one, in words."""
    found = []
    for scenario, good, _ in _by_scenario(rows):
        for number, stage in enumerate(good[0].blind.live.stages):
            told = [f"{scenario}: {stage.stage}"]
            for _, name, times in STAGE_FIGURES:
                means = (
                    sum(getattr(getattr(one, way).live.stages[number], name) or 0.0 for one in good) / len(good)
                    for way in ("blind", "as_one")
                )
                told.append(" → ".join(f"{times * one:.2f}" for one in means))
            found.append(told)
    return found


def _by_scenario(rows: Sequence[ChainLiveRow]) -> Iterator[tuple[str, list[ChainLiveRow], int]]:
    """Yield scenario, its valid pairs, and how many are not; none of one that has no valid pair."""
    for scenario, some in groupby(sorted(rows, key=question), key=attrgetter("scenario")):
        pairs = list(some)
        good = [one for one in pairs if one.valid]
        if good:
            yield scenario, good, len(pairs) - len(good)


def tables(rows: Sequence[ChainLiveRow]) -> str:
    """Return what the pairs came to, end to end and stage by stage."""
    columns = {"load, how (pairs)" if head == "load" else head: cell for head, cell in COLUMNS.items()}
    whole = markdown.in_columns(columns, compared(rows))
    return whole + markdown.table(("stage, live", *(head for head, *_ in STAGE_FIGURES)), stages(rows))


def live_chain_table() -> str:
    """Return the committed pairs; only heads before any was measured."""
    kept = load(NAME, ChainLiveRow)
    return tables([one.result for one in kept]) + markdown.sources(one.origin for one in kept)
