"""Items and bins: an item is a partition, a bin is a replica that has no name yet."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """One partition with its arrival rate (λ, events/s) and lag (events). The lag may include expected arrivals.

    Raises ValueError for a load that is negative or not a finite number.
    """

    partition: int
    arrival_rate: float
    lag: float

    def __post_init__(self) -> None:
        if not (0 <= self.arrival_rate < math.inf and 0 <= self.lag < math.inf):
            raise ValueError(
                f"partition {self.partition}: arrival rate {self.arrival_rate} events/s and lag {self.lag} events "
                "must be finite and not negative"
            )

    @property
    def idle(self) -> bool:
        """Whether no event arrives and none waits."""
        return self.arrival_rate == 0 and self.lag == 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """Limits of one bin: arrival rate (events/s) and lag (events). Infinity: no limit. ValueError unless positive."""

    arrival_rate: float
    lag: float

    def __post_init__(self) -> None:
        if not (self.arrival_rate > 0 and self.lag > 0):
            raise ValueError(f"capacity must be positive, got {self.arrival_rate} events/s and {self.lag} events")

    @classmethod
    def of_replica(cls, service_rate: float, latency_target_s: float, share: float) -> "Capacity":
        """Return the limits μ·f for the rate and μ·W·f for the lag, which takes W·f to serve (W: target, f: share)."""
        return cls(service_rate * share, service_rate * latency_target_s * share)

    def exceeded_by(self, arrival_rate: float, lag: float) -> bool:
        """Return whether the load exceeds the capacity in either dimension."""
        return arrival_rate > self.arrival_rate or lag > self.lag


UNLIMITED = Capacity(math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Bin:
    """Items that share a replica, with their full loads, even if these exceed the capacity."""

    items: tuple[Item, ...]

    @property
    def arrival_rate(self) -> float:
        """Total λ, events/s."""
        return sum(item.arrival_rate for item in self.items)

    @property
    def lag(self) -> float:
        """Total lag, events."""
        return sum(item.lag for item in self.items)
