"""What serves a share group (KIP-932): one queue, from which every free replica takes the oldest unit of work.

Two implementations give the same numbers to the last event: `reference.ReferencePool`, to be read, and
`fast.FastPool`, to be run. Time, feeding, counting and taking are as in `engine.Engine`.

Rules of both:
- A unit is a single event, or with `whole_batches` all events of one partition with one intended time.
- Of several free members the one that has been free longest takes the unit, then the one with the smallest number.
- What was acquired is served to its end, and each event is acknowledged when it is finished.
- What a killed replica had acquired comes before all that waits, once it is given back.
- The order of a partition is not kept.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.engine import Served
from autoscaler.simulator.service import ServiceTimes


@runtime_checkable
class Pool(Protocol):
    """Serves as `engine.Engine` does, except that replicas join and leave; nothing is attached."""

    @property
    def now_us(self) -> int:
        """See `Engine`."""
        ...

    def add_replica(self) -> int:
        """Return the number of a new replica; it serves nothing until it joins."""
        ...

    def join(self, replica: int) -> None:
        """From now on `replica` takes units."""
        ...

    def leave(self, replica: int) -> None:
        """From now on `replica` takes nothing; what it has acquired it finishes."""
        ...

    def busy_until_us(self, replica: int) -> int:
        """Return when `replica` has finished what it acquired."""
        ...

    def kill(self, replica: int) -> None:
        """End `replica` now. What it acquired and did not finish waits until it is given back."""
        ...

    def give_back(self, replica: int) -> None:
        """Let the others have what `replica`, which was killed, did not finish."""
        ...

    def feed(self, arrivals: Arrivals) -> None:
        """See `Engine`. Units are formed of what is fed at once."""
        ...

    def advance(self, until_us: int) -> None:
        """See `Engine`."""
        ...

    def produced(self) -> NDArray[np.int64]:
        """See `Engine`."""
        ...

    def committed(self) -> NDArray[np.int64]:
        """See `Engine`."""
        ...

    def drain(self) -> int:
        """See `Engine`. Raises ValueError if work is left and nobody is a member."""
        ...

    def take(self) -> Served:
        """See `Engine`."""
        ...


class PoolFactory(Protocol):
    """Makes a pool."""

    def __call__(self, partitions: int, service: ServiceTimes, *, whole_batches: bool = False) -> Pool:
        """Return a new one at the start of time."""
        ...
