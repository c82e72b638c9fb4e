"""Rebalances as result.json tells them: one by one, and the distribution of their lengths."""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from report.measures import percentile_us

MOST_ROUNDS: Final = 5_000
"""Newest rebalances that a result lists; their distribution is of all."""
REBALANCE_KINDS: Final[dict[str, str]] = {
    "plan": "a plan moved partitions",
    "death": "a plan gave away what a dead replica had",
    "membership": "the group itself, without a plan",
}
"""Kind of round, as the autoscaler's learner tells them apart → what it means."""


class RebalanceRound(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions changed hands. Lengths are those that events met; null where none waited, so that nothing shows."""

    at_s: float
    """When the last of them was served again, since the start of the run."""
    kind: str
    """One of REBALANCE_KINDS."""
    members: int
    """Replicas of the newest plan."""
    moved: int
    """Partitions whose owner changed."""
    pause_s: float | None
    """Longest time that an event waited after its partition's old owner had done its last, and a plan was written."""
    plan_to_ready_s: float | None
    """From the plan until the last of these was served; null also where no plan caused the round."""


class RebalanceLengths(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of one delivery and kind with equally many members and moved partitions. Nearest rank."""

    delivery: str
    """How replicas carry out plans: incremental, eager, or the runtime's name."""
    kind: str
    members: int
    moved: int
    rounds: int
    measured: int
    """Rounds in which an event waited: those that the lengths are of."""
    pause_p50_s: float | None = None
    pause_p90_s: float | None = None
    pause_p99_s: float | None = None
    pause_max_s: float | None = None
    ready_p50_s: float | None = None
    """From the plan until all was served again; the ready_… are null where no plan caused the rounds."""
    ready_p90_s: float | None = None
    ready_p99_s: float | None = None
    ready_max_s: float | None = None


class Rebalances(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of a run."""

    delivery: str
    lengths: tuple[RebalanceLengths, ...]
    """By kind, members and moved."""
    rounds: tuple[RebalanceRound, ...]
    """In order of time."""
    rounds_left_out: int = 0
    """Older ones that are not listed."""

    @classmethod
    def of(cls, delivery: str, rounds: Iterable[RebalanceRound]) -> "Rebalances":
        """Return the rounds with the distribution of their lengths."""
        ordered = sorted(rounds, key=lambda one: (one.at_s, one.kind))
        groups: dict[tuple[int, int, int], list[RebalanceRound]] = {}
        for one in ordered:
            groups.setdefault((list(REBALANCE_KINDS).index(one.kind), one.members, one.moved), []).append(one)
        newest = ordered[-MOST_ROUNDS:]
        return cls(
            delivery=delivery,
            lengths=tuple(_lengths(delivery, some) for _, some in sorted(groups.items())),
            rounds=tuple(newest),
            rounds_left_out=len(ordered) - len(newest),
        )


def _lengths(delivery: str, some: list[RebalanceRound]) -> RebalanceLengths:
    """Return how long rounds of one kind with equally many members and moved partitions took."""
    return RebalanceLengths(
        delivery=delivery,
        kind=some[0].kind,
        members=some[0].members,
        moved=some[0].moved,
        rounds=len(some),
        measured=sum(one.pause_s is not None for one in some),
        **_ranks("pause", [one.pause_s for one in some]),
        **_ranks("ready", [one.plan_to_ready_s for one in some]),
    )


def _ranks(name: str, lengths_s: Iterable[float | None]) -> dict[str, float]:
    known_us = np.array([round(length * 1e6) for length in lengths_s if length is not None], np.int64)
    if not len(known_us):
        return {}
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {f"{name}_{rank}_s": percentile_us(known_us, share) / 1e6 for rank, share in ranks.items()}
