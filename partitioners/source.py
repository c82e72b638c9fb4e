"""A source of events, which chooses partitions by its own counts and by the waiting times that are reported to it."""

from typing import Final
from zlib import crc32

from partitioners import Partitioner
from partitioners.rules import BUSY, CG, FINE, IDLE, State, choose, mix, record_signal

RULES: Final = {rule: number for number, rule in enumerate(list(Partitioner)[1:])}  # in the order of `choosing`
EPSILON: Final = 0.01  # from the paper: largest share by which a worker exceeds the mean load
VIRTUAL_PER_WORKER: Final = 10  # initial virtual workers of each worker under consistent grouping
NODES_PER_WORKER: Final = 100  # nodes of each worker on the ring of consistent hashing
WINDOW_S: Final = 2.0  # waiting times are collected for this long before they become signals


class Source:
    """Chooses the partitions of one source of events, and counts its events."""

    def __init__(self, partitioner: Partitioner, partitions: int, *, number: int = 0) -> None:
        self._rule = RULES[partitioner]
        self._waited_s: dict[int, float] = {}
        self._window_ends_s = 0.0
        self.state = new_state(partitioner, partitions, number=number)

    def choose(self, key: str) -> int:
        """Return the partition of the next event, which has this key."""
        return choose(self._rule, EPSILON, self.state, crc32(key.encode()))

    def record_wait(self, partition: int, waited_s: float, at_s: float, *, busy_s: float, idle_s: float) -> None:
        """Record how long an event of a partition waited and when it was served, as its acknowledgement reports.

        In 2 s, a partition is busy if an event waited more than busy_s, idle if all waited less than idle_s. For `cg`.
        """
        if self._rule != CG:
            return
        if at_s >= self._window_ends_s:
            for worker, longest_s in self._waited_s.items():
                record_signal(self.state, worker, BUSY if longest_s > busy_s else IDLE if longest_s < idle_s else FINE)
            self._waited_s.clear()
            self._window_ends_s = at_s + WINDOW_S
        self._waited_s[partition] = max(waited_s, self._waited_s.get(partition, 0.0))


def new_state(
    partitioner: Partitioner, partitions: int, *, number: int = 0, virtual: int = VIRTUAL_PER_WORKER
) -> State:
    """Return the initial state of source `number`, as lists. Tables that the rule does not use are empty."""
    ring = sorted(
        (mix(worker, 1000 + node), worker) for worker in range(partitions) for node in range(NODES_PER_WORKER)
    )
    ring = ring if partitioner is Partitioner.CH else []
    virtual_workers = partitions * virtual if partitioner is Partitioner.CG else partitions
    sketched = partitioner is Partitioner.STICKY_SPLIT
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
