"""Who gets what under a plan that states a count only: the group's own assignors. None of them knows loads."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Final

from autoscaler.simulator.settings import Assignor

Owners = Mapping[int, str]


def assign(assignor: Assignor, partitions: int, replicas: Sequence[str], owners: Owners) -> dict[int, str]:
    """Return partition → replica for every partition. owners: who has what now; owners outside `replicas` are gone."""
    return _ASSIGNORS[assignor](partitions, replicas, owners)


def _range(partitions: int, replicas: Sequence[str], _owners: Owners) -> dict[int, str]:
    """Consecutive partitions; the first replicas get one more where it does not divide."""
    each, more = divmod(partitions, len(replicas))
    names = [name for index, name in enumerate(replicas) for _ in range(each + (index < more))]
    return dict(enumerate(names))


def _sticky(partitions: int, replicas: Sequence[str], owners: Owners) -> dict[int, str]:
    """Counts that differ by one at most, and the fewest moves that this allows.

    Where it does not divide, those that hold most now may keep one more than the others: each of them saves a move.
    """
    each, more = divmod(partitions, len(replicas))
    held: dict[str, list[int]] = {name: [] for name in replicas}
    for partition in range(partitions):
        if (owner := owners.get(partition)) in held:
            held[owner].append(partition)
    by_size = sorted(replicas, key=lambda name: -len(held[name]))  # stable: then the oldest first
    room = {name: each + (index < more) for index, name in enumerate(by_size)}
    placed = {partition: name for name in replicas for partition in held[name][: room[name]]}
    spread_by_count(placed, (partition for partition in range(partitions) if partition not in placed), replicas, room)
    return dict(sorted(placed.items()))


def spread_by_count(
    placed: MutableMapping[int, str],
    homeless: Iterable[int],
    replicas: Sequence[str],
    room: Mapping[str, int] | None = None,
) -> None:
    """Add each of `homeless` to `placed`, at the replica that then has the fewest; ties go to the oldest.

    room: how many a replica may have; None: any number.
    """
    count = dict.fromkeys(replicas, 0)
    for name in placed.values():
        if name in count:
            count[name] += 1
    for partition in homeless:
        open_to = replicas if room is None else [name for name in replicas if count[name] < room[name]]
        owner = min(open_to, key=count.__getitem__)
        placed[partition] = owner
        count[owner] += 1


_ASSIGNORS: Final[Mapping[Assignor, Callable[[int, Sequence[str], Owners], dict[int, str]]]] = {
    Assignor.STICKY: _sticky,
    Assignor.RANGE: _range,
    Assignor.UNIFORM: _sticky,
}
"""KIP-848's uniform assignor keeps what it can within equal counts: for one topic that is the sticky one."""
