"""Bins get the names of replicas so that as little arrival rate as possible changes its owner."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count

from autoscaler.packing.bins import Bin

Overlap = Sequence[Mapping[str, int]]
"""Per bin: replica → what stays where it is if the bin gets that name."""
RATE_UNITS = 1_000_000
"""Rates are counted in millionths of an event/s: integers add exactly, so the search below provably ends."""


def name_bins(bins: Sequence[Bin], owners: Mapping[int, str], names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """Return one replica name for each bin, all different.

    owners: partition → its owner now; an owner outside `names` is gone.
    names: replicas that may stay, preferred first. Bins beyond them get `prefix`-<smallest unused ordinal>.
    The rate that stays with its owner is the largest possible (to a millionth of an event/s), then the number of
    partitions that stay.
    """
    matched = _best_matching(_overlap(bins, owners, set(names)))
    kept = set(matched.values())
    spare = chain((name for name in names if name not in kept), fresh_names(prefix, {*names, *owners.values()}))
    return tuple(matched[index] if index in matched else next(spare) for index in range(len(bins)))


def fresh_names(prefix: str, taken: set[str]) -> Iterator[str]:
    """Yield `prefix`-0, `prefix`-1, … without those already taken."""
    return (name for ordinal in count() if (name := f"{prefix}-{ordinal}") not in taken)


def _overlap(bins: Sequence[Bin], owners: Mapping[int, str], names: set[str]) -> Overlap:
    overlap: list[dict[str, int]] = []
    for one in bins:
        shared: dict[str, int] = {}
        for item in one.items:
            owner = owners.get(item.partition)
            if owner in names:
                # one unit for the handover itself: moving an idle partition is not free either
                shared[owner] = shared.get(owner, 0) + round(item.arrival_rate * RATE_UNITS) + 1
        overlap.append(shared)
    return overlap


def _best_matching(overlap: Overlap) -> dict[int, str]:
    """Return bin → name with the largest total overlap (maximum-weight bipartite matching).

    Bins enter one by one. Each takes the alternating path with the largest gain: it takes a name, whose holder takes
    another one, and so on, until somebody finds a free name or gives up. The matching is optimal for the bins so far,
    hence no cycle of swaps has a gain, hence the search for the longest path (Bellman-Ford) ends.
    """
    holder: dict[str, int] = {}
    for entering in range(len(overlap)):
        gain = {entering: 0}
        taken_from: dict[int, tuple[int, str]] = {}  # bin that loses its name → bin that takes it, name
        best, best_end = 0, (entering, "")
        queue = deque([entering])
        while queue:
            taker = queue.popleft()
            for name, weight in overlap[taker].items():
                loser = holder.get(name)
                reached = gain[taker] + weight - (overlap[loser][name] if loser is not None else 0)
                if loser is None:
                    if reached > best:
                        best, best_end = reached, (taker, name)
                elif loser not in gain or reached > gain[loser]:
                    gain[loser], taken_from[loser] = reached, (taker, name)
                    queue.append(loser)
                    if reached > best:
                        best, best_end = reached, (loser, "")
        _follow(best_end, taken_from, holder)
    return {index: name for name, index in holder.items()}


def _follow(end: tuple[int, str], taken_from: Mapping[int, tuple[int, str]], holder: dict[str, int]) -> None:
    """Carry out the swaps of one path from its end: (bin, free name), or (bin, "") for a bin left without a name."""
    taker, name = end
    while True:
        if name:
            holder[name] = taker
        if taker not in taken_from:
            return
        taker, name = taken_from[taker]
