"""How old the commits were that the autoscaler saw: on average, and how often replicas made them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from autoscaler.simulator.settings import Tick
from bench.replay.recorded import Recorded, Times
from contracts.journal import TickRecord

OLDEST_COMMIT_US: Final = 2_000_000
"""Beyond it a lag is no matter of commits."""
VAGUE_SHARE: Final = 0.3
"""Of the interval between commits: a commit whose moment is known less well tells nothing of the clock."""
ENOUGH: Final = 20
"""Pairs of ticks that tell how a clock runs."""


def commit_age_us(recorded: Recorded) -> int:
    """Return how old commits were, µs: the age with which what was not done sums up to the lag that all ticks saw."""
    ticks = recorded.ticks
    at_us = np.array([tick.at_us - recorded.started_us for tick in ticks])
    handed_us, done_us = np.sort(recorded.served.handed_us), np.sort(recorded.served.done_us)
    lag = sum(seen.lag for tick in ticks for seen in tick.partitions)
    known = int(np.searchsorted(handed_us, at_us).sum()) - lag
    low, high = 0, OLDEST_COMMIT_US
    while low < high:
        middle = (low + high) // 2
        committed = int(np.searchsorted(done_us, at_us - middle, side="right").sum())
        low, high = (low, middle) if committed <= known else (middle + 1, high)
    return low


def commit_interval_us(recorded: Recorded) -> float:
    """Return the time from commit to commit of a replica, µs.

    It is longer than what replicas are told to wait, by what a commit takes, and a little is much: the age that ticks
    see drifts by ten times that in a second. What they are told, where too little is seen.
    """
    commits, found = [commits for _, commits in _seen_commits(recorded, vague=False)], []
    told_us = recorded.commit_interval_us
    for before, after in pairwise(commits):
        for owner in before.keys() & after.keys():
            passed_us = after[owner] - before[owner]
            if count := round(passed_us / told_us):
                found.append(passed_us / count)
    return float(np.median(found)) if len(found) >= ENOUGH else told_us


def ticks_of(recorded: Recorded) -> list[Tick]:
    """Return the run's own ticks, for a world that begins `lead_us` before it: when, and how old commits were then."""
    return [
        Tick(at_us + recorded.lead_us, {owner: (at_us - commit_us) / 1e6 for owner, commit_us in commits.items()})
        for at_us, commits in _seen_commits(recorded, vague=True)
    ]


def _seen_commits(recorded: Recorded, *, vague: bool) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield for each tick when it was, and when the last commits were that it sees, by replica; µs since second 0.

    vague: those, too, of which only is known that they were before a replica, idle until then, had done anything.
    """
    served, vague_us = recorded.served, VAGUE_SHARE * recorded.commit_interval_us
    partitions = range(recorded.info.payment_partitions)
    handed = [np.sort(served.handed_us[served.partition == one]) for one in partitions]
    done = [np.sort(served.done_us[served.partition == one]) for one in partitions]
    for tick in recorded.all_ticks:
        at_us = tick.at_us - recorded.started_us
        yield at_us, _commits_us(tick, at_us, handed, done, vague_us, vague=vague)


def _commits_us(
    tick: TickRecord, at_us: int, handed: Sequence[Times], done: Sequence[Times], vague_us: float, *, vague: bool
) -> dict[str, float]:
    """Return when the last commit was that the tick sees of each replica, where what was done around it tells.

    Between the last event that it holds and the next one that was done. Where that is long, nearer to the latter than
    `vague_us`, if such a commit is wanted: one of long before would hold the same.
    """
    found: dict[str, float] = {}
    for owner in {seen.owner for seen in tick.partitions if seen.owner is not None}:
        theirs = [seen for seen in tick.partitions if seen.owner == owner]
        finished = [done[seen.partition][: np.searchsorted(done[seen.partition], at_us)] for seen in theirs]
        committed = sum(int(np.searchsorted(handed[seen.partition], at_us)) - seen.lag for seen in theirs)
        since = sum(map(len, finished)) - committed
        if since < 0:
            continue
        newest = np.append(np.sort(np.concatenate([times[-since - 1 :] for times in finished])), at_us)
        if since < len(newest) - 1:
            next_us, gap_us = float(newest[-since - 1]), float(newest[-since - 1] - newest[-since - 2])
            if vague or gap_us < vague_us:
                found[owner] = next_us - min(gap_us, vague_us) / 2
    return found
