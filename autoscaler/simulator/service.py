"""How long events take: a demand of each event, drawn once for all policies, and what the replica makes of it."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.settings import Distribution, ServiceSettings

BLOCK: Final = 1 << 14
"""Demands are drawn so many at a time, each block by a generator of its own: no event needs those before it."""
_US: Final = 1e6


class ServiceTimes:
    """Service time of event k = its demand × the slow-down at that moment / speed of the replica, in whole µs, ≥ 1.

    The demand depends on the seed and k only, so that every policy and both engines serve the same work.
    """

    def __init__(self, settings: ServiceSettings, seed: int) -> None:
        """Raise ValueError for times, speeds or factors that are not positive, and for a Pareto shape of 1 or less."""
        _check(settings)
        self._settings = settings
        self._seed = seed
        self._block = -1
        self._drawn = np.empty(0)
        self.slow_from_us: Final = round(settings.slow_from_s * _US)
        self.slow_until_us: Final = round(settings.slow_until_s * _US)
        self.slow_factor: Final = float(settings.slow_factor)

    def service_us(self, event: int, replica: int, started_us: int, *, speed: float = 1.0) -> int:
        """Return what `event` takes on `replica` from `started_us` on; `speed` is multiplied to the replica's own."""
        if event // BLOCK != self._block:
            self._block = event // BLOCK
            self._drawn = self._draw(self._block)
        slow = self.slow_factor if self.slow_from_us <= started_us < self.slow_until_us else 1.0
        return max(1, int(float(self._drawn[event % BLOCK]) * slow / (self.speed(replica) * speed) + 0.5))

    def speed(self, replica: int) -> float:
        """Return the speed that the settings give to a replica's number."""
        speeds = self._settings.speeds
        return float(speeds[replica % len(speeds)])

    def demands_us(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the demands of events first … first + count − 1, µs, not rounded."""
        if self._settings.distribution is Distribution.DETERMINISTIC:
            return np.full(count, self._mean_us())
        if not count:
            return np.empty(0)
        blocks = range(first // BLOCK, (first + count - 1) // BLOCK + 1)
        drawn = np.concatenate([self._draw(block) for block in blocks])
        skipped = first - blocks[0] * BLOCK
        return drawn[skipped : skipped + count]

    def _mean_us(self) -> float:
        return (self._settings.service_time_s + self._settings.overhead_s) * _US

    def _draw(self, block: int) -> NDArray[np.float64]:
        """Return the demands of one block."""
        mean_us, overhead_us = self._settings.service_time_s * _US, self._settings.overhead_s * _US
        chance = np.random.default_rng((self._seed, block))
        match self._settings.distribution:
            case Distribution.DETERMINISTIC:
                return np.full(BLOCK, self._mean_us())
            case Distribution.EXPONENTIAL:
                return chance.standard_exponential(BLOCK) * mean_us + overhead_us
            case Distribution.PARETO:
                shape = self._settings.pareto_shape
                smallest_us = mean_us * (shape - 1) / shape
                return (1 + chance.pareto(shape, BLOCK)) * smallest_us + overhead_us


def _check(settings: ServiceSettings) -> None:
    wrong = [
        f"{name} must be {rule}, not {value}"
        for name, rule, value, fine in (
            ("service_time_s", "above 0", settings.service_time_s, settings.service_time_s > 0),
            ("overhead_s", "0 or more", settings.overhead_s, settings.overhead_s >= 0),
            ("pareto_shape", "above 1, for there to be a mean", settings.pareto_shape, settings.pareto_shape > 1),
            ("speeds", "above 0 and at least one", settings.speeds, settings.speeds and min(settings.speeds) > 0),
            ("slow_factor", "above 0", settings.slow_factor, settings.slow_factor > 0),
        )
        if not fine
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
