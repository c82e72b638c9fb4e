"""Counts at which partitions divide well: the operator's adjustment for sources whose partitions are known."""


def aligned(wanted: int, now: int, partitions: int, mode: str, *, at_least: int = 1) -> int:
    """Return the count near `wanted` ≤ `partitions` that `mode` prefers, never on the other side of `now`.

    First upwards, to a count that divides the partitions, or (maximize-utilisation) at which the least that a replica
    owns is fewer; a group that shrinks looks no higher than `now`. Where there is none, downwards, to the fewest
    replicas of which the least loaded own no more than at `wanted`.
    """
    if mode == "none" or wanted == now:
        return wanted
    each = partitions // wanted
    highest = partitions if wanted > now else min(now, partitions)
    for count in range(wanted, highest + 1):
        if partitions % count == 0 or (mode == "maximize-utilisation" and partitions // count < each):
            return count
    lower = next((count for count in range(wanted, 0, -1) if partitions // count > each), 0)
    if lower and partitions % lower:
        lower += 1
    found = max(lower, at_least)
    return found if (found > now) == (wanted > now) and found != now else now
