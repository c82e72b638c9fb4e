"""A source: it chooses a partition for each event by what it has sent itself, and by what it hears back."""

from typing import Final
from zlib import crc32

from grouping import Partitioner
from grouping.choosing import BUSY, CG, FINE, IDLE, State, choose, mix, record_signal

RULES: Final = {rule: number for number, rule in enumerate(list(Partitioner)[1:])}  # in the order of `choosing`
EPSILON: Final = 0.01  # the paper's: no worker exceeds the mean load by more than this share
VIRTUAL_PER_WORKER: Final = 10  # virtual workers of each worker at the start, under consistent grouping; …
NODES_PER_WORKER: Final = 100  # … and on the ring of consistent hashing
WINDOW_S: Final = 2.0  # how long acknowledgements are gathered before they say who is busy


class Source:
    """One source of events, with counts of its own."""

    def __init__(
        self,
        grouping: Partitioner,
        partitions: int,
        *,
        number: int = 0,
        epsilon: float = EPSILON,
        virtual: int = VIRTUAL_PER_WORKER,
    ) -> None:
        self._rule = RULES[grouping]
        self._epsilon = epsilon
        self._waited_s: dict[int, float] = {}
        self._window_ends_s = 0.0
        self.state = new_state(grouping, partitions, number=number, virtual=virtual)

    def choose(self, key: str) -> int:
        """Return the partition of the next event, which is of this key."""
        return choose(self._rule, self._epsilon, self.state, crc32(key.encode()))

    def record_wait(self, partition: int, waited_s: float, at_s: float, *, busy_s: float, idle_s: float) -> None:
        """Take in how long an event of that partition waited, and when it was served, as its acknowledgement says.

        Partitions where one waited beyond busy_s are too much for their owner, those where none waited for idle_s could
        have more. Only consistent grouping acts on that, each WINDOW_S, and for later events alone.
        """
        if self._rule != CG:
            return
        if at_s >= self._window_ends_s:
            for one, longest_s in self._waited_s.items():
                record_signal(self.state, one, BUSY if longest_s > busy_s else IDLE if longest_s < idle_s else FINE)
            self._waited_s.clear()
            self._window_ends_s = at_s + WINDOW_S
        self._waited_s[partition] = max(waited_s, self._waited_s.get(partition, 0.0))


def new_state(grouping: Partitioner, partitions: int, *, number: int = 0, virtual: int = VIRTUAL_PER_WORKER) -> State:
    """Return what source `number` knows at the beginning, as lists. A rule's own tables alone have a length."""
    ring = sorted(
        (mix(worker, 1000 + node), worker) for worker in range(partitions) for node in range(NODES_PER_WORKER)
    )
    ring = ring if grouping is Partitioner.CH else []
    virtual_workers = partitions * virtual if grouping is Partitioner.CG else partitions
    sketched = grouping is Partitioner.STICKY_SPLIT
    return State(
        loads=[0] * virtual_workers,
        numbers=[0, 0, 0, number],
        ring_at=[at for at, _ in ring],
        ring_worker=[worker for _, worker in ring],
        owner=[virtual_worker % partitions for virtual_worker in range(virtual_workers)],
        signal=[FINE] * partitions,
        signal_since=[0] * partitions,
        sketch=[0] * (128 * partitions * sketched),
        split_key=[0] * (16 * partitions * sketched),
        split_over=[0] * (16 * partitions * sketched),
    )
