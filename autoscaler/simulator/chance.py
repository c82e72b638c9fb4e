"""Random values of a simulation: service times, start-up times and heartbeats.

Each cause has its own random stream, so that no cause influences another.
"""

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.settings import Distribution, ServiceSettings

BLOCK: Final = 1 << 14
"""Demands per block. Each block has its own generator, so the demand of an event does not depend on earlier ones."""
QUICK_SHARE: Final = 0.88
QUICK_S: Final = (10.0, 50.0)
SLOW_S: Final = (50.0, 120.0)
"""Start-up times measured on GKE: 88 % of pods in 10 to 50 s, the rest above. They are uniform within each range."""
_US: Final = 1e6


class Cause(IntEnum):
    """Random causes other than service times. Their numbers are seeds that differ from the blocks of service times."""

    START_UP = 0x7A110001
    HEARTBEAT = 0x7A110002
    LOSS = 0x7A110003
    CHAIN = 0x7A110005


def chance_of(cause: Cause, seed: int, number: int = 0) -> np.random.Generator:
    """Return the generator of item `number` of `cause` in a run with `seed`."""
    return np.random.default_rng((seed, cause, number))


class ServiceTimes:
    """Demands of events. Service time = demand × slow-down at its start / speed of the replica, whole µs, ≥ 1.

    The demand of an event depends only on the seed and its number, so that every policy serves the same work.
    """

    def __init__(self, settings: ServiceSettings, seed: int) -> None:
        self.settings, self._seed = settings, seed
        self.slow_from_us: Final = round(settings.slow_from_s * _US)
        self.slow_until_us: Final = round(settings.slow_until_s * _US)
        self.limit_gaps_us: Final = tuple(max(1, round(_US / limit)) for limit in settings.shared_limits)
        """Minimum gaps between the starts of two events of all replicas together, one for each period of limit_each_us;
        empty: no limit."""
        self.limit_each_us: Final = max(1, round(settings.shared_limit_s * _US))

    def demands_us(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the demands of events first … first + count − 1, µs, unrounded."""
        if self.settings.distribution is Distribution.DETERMINISTIC:
            return np.full(count, (self.settings.service_time_s + self.settings.overhead_s) * _US)
        if not count:
            return np.empty(0)
        blocks = range(first // BLOCK, (first + count - 1) // BLOCK + 1)
        demands = np.concatenate([self._draw(block) for block in blocks])
        skipped = first - blocks[0] * BLOCK
        return demands[skipped : skipped + count]

    def _draw(self, block: int) -> NDArray[np.float64]:
        mean_us, overhead_us = self.settings.service_time_s * _US, self.settings.overhead_s * _US
        chance = np.random.default_rng((self._seed, block))
        match self.settings.distribution:
            case Distribution.EXPONENTIAL:
                return chance.standard_exponential(BLOCK) * mean_us + overhead_us
            case Distribution.LOGNORMAL:
                sigma = self.settings.lognormal_sigma
                return np.exp(chance.standard_normal(BLOCK) * sigma - sigma**2 / 2) * mean_us + overhead_us
            case _:  # Pareto
                shape = self.settings.pareto_shape
                smallest_us = mean_us * (shape - 1) / shape
                return (1 + chance.pareto(shape, BLOCK)) * smallest_us + overhead_us


def startup_time_s(fixed_s: float | None, seed: int, request: int) -> float:
    """Return the start-up time of request number `request` (from 0): `fixed_s`, or sampled if that is None."""
    if fixed_s is not None:
        return fixed_s
    chance = chance_of(Cause.START_UP, seed, request)
    low_s, high_s = QUICK_S if chance.random() < QUICK_SHARE else SLOW_S
    return float(chance.uniform(low_s, high_s))


class Heartbeats:
    """Times at which each member contacts its group: every `interval_us` from a random phase on; 0: at any time.

    in_phase: all members at the same times, because the answer that ends a rebalance starts all their timers at once.
    """

    def __init__(self, interval_us: int, seed: int, *, in_phase: bool = False) -> None:
        self._in_phase, self._interval_us, self._seed = in_phase, interval_us, seed
        self._phase_us: dict[int, int] = {}

    def next_us(self, replica: int, from_us: int) -> int:
        """Return the first heartbeat of `replica` at or after `from_us`."""
        if not self._interval_us:
            return from_us
        replica = 0 if self._in_phase else replica
        if replica not in self._phase_us:
            chance = chance_of(Cause.HEARTBEAT, self._seed, replica)
            self._phase_us[replica] = int(chance.integers(self._interval_us))
        return from_us + (self._phase_us[replica] - from_us) % self._interval_us
