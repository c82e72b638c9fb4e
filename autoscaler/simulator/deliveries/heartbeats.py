"""Members hear of news when they report to the group: at their next heartbeat."""

from autoscaler.simulator.chance import Cause, chance_of


class Heartbeats:
    """When each member reports: every `interval_us`, at a phase of its own, uniform. Interval 0: at any time."""

    def __init__(self, interval_us: int, seed: int) -> None:
        self._interval_us = interval_us
        self._seed = seed
        self._phase_us: dict[int, int] = {}

    def next_us(self, replica: int, from_us: int) -> int:
        """Return the first heartbeat of `replica` at or after `from_us`."""
        if not self._interval_us:
            return from_us
        if replica not in self._phase_us:
            chance = chance_of(Cause.HEARTBEAT, self._seed, replica)
            self._phase_us[replica] = int(chance.integers(self._interval_us))
        return from_us + (self._phase_us[replica] - from_us) % self._interval_us
