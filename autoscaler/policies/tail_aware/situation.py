"""What the candidates are judged by, and what one of them is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """All that the candidates are judged by. Partitions and replicas by index; replicas in the order requested."""

    waiting: Floats
    """Events that wait, by age and partition, shape (slots, partitions), the newest slot last."""
    expected: Floats
    """Events that will arrive, by slot and partition."""
    paid_s: float
    """For so long the replicas of a plan are paid, when plans are compared."""
    variance: Floats
    """Of the events of one interval, by partition."""
    sizes: Floats
    """Events of one interval to plan for, by partition."""
    shape: Floats
    """Share of an interval's events by slot, shape (slots,)."""
    owners: Ints
    """Replica of each partition, −1 for none."""
    in_handover_s: Floats
    """How long the partition's handover still takes; 0: it is served."""
    rates: Floats
    """μ of each replica, events/s."""
    typical_rate: float
    """μ of a replica that is new."""
    slot_s: float
    target_s: float
    """W less what is lost to anything but waiting and serving."""
    pause_s: float
    """Of a partition that moves."""
    start_s: float
    """Until a replica that is asked for now can serve: so far into `expected` the present owners do."""
    late_price_s: float
    """Replica-seconds that keeping one event in time is worth while there is budget."""
    scarcity: Callable[[float], float]
    """How many times that when so many more are late."""
    start_price_s: float
    """Replica-seconds that starting a replica costs."""
    move_price_s: float
    """Replica-seconds that moving a partition costs, beside the events that it makes late."""

    @property
    def interval_s(self) -> float:
        """Decision interval."""
        return len(self.shape) * self.slot_s


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A plan that could follow. cost: replica-seconds, late events at their price included."""

    owners: Ints
    replicas: tuple[int, ...]
    """Indices of those that stay or come."""
    late: float
    """Events expected to be late, of those that wait and those that are looked ahead to."""
    lasts: bool
    """No replica has more to do than it can do, interval after interval; otherwise the plan lives on the slack of W."""
    moved: int
    """Partitions that change their owner."""
    cost: float
