"""How long the group took to carry out a plan, by what its replicas report of their rounds."""

from collections.abc import Iterable
from dataclasses import dataclass

from contracts.progress import Round


@dataclass(frozen=True, slots=True)
class Applied:
    """One plan, carried out."""

    taken: int
    """Partitions that replicas say they took over under it."""
    done_us: int
    """When the last of them had them, µs since the epoch; 0 where none was taken."""
    rounds: int
    """Different generations in which something changed hands."""
    pauses_us: tuple[int, ...]
    """Longest pause of each replica that took partitions, in each round."""


def applied(reported: Iterable[tuple[str, Round]], epoch: int) -> Applied:
    """Return what became of plan `epoch`. reported: (replica, round)."""
    mine = [one for _, one in reported if one.epoch == epoch and (one.taken or one.released)]
    took = [one for one in mine if one.taken]
    return Applied(
        taken=sum(one.taken for one in took),
        done_us=max((one.at_us for one in took), default=0),
        rounds=len({one.generation for one in mine}),
        pauses_us=tuple(one.pause_us for one in took),
    )
