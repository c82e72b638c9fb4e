"""When replicas commit: each by a clock of its own, so that what is seen of them differs in age from look to look."""

from math import floor
from typing import Final

from autoscaler.simulator.chance import Cause, chance_of
from autoscaler.simulator.settings import SimulationSettings

MOMENTS: Final = 20
"""At which commits are read for a look; a clock is taken to have struck at the nearest one. At 0.1 s between commits
that is every 5 ms."""


class CommitClocks:
    """Replica r commits at (k + its phase) · interval, k = 0, 1, …; the phases are random."""

    def __init__(self, settings: SimulationSettings) -> None:
        self._seed = settings.seed
        self._age_us = round(settings.commit_age_s * 1e6)
        self._interval_us = settings.commit_interval_s * 1e6
        self._phases: dict[int, float] = {}

    def moments_us(self, look_us: int) -> list[int]:
        """Return when to read the commits that a look at `look_us` may see, oldest first; none: at the look itself."""
        if not self._interval_us:
            return [look_us - self._age_us] if self._age_us else []
        ages_us = (self._age_us + self._interval_us * (0.5 - (one + 0.5) / MOMENTS) for one in range(MOMENTS))
        return [look_us - max(0, round(age_us)) for age_us in ages_us]

    def seen(self, replica: int, look_us: int, known_s: float | None) -> int:
        """Return which of those moments is that of the last commit of `replica` that the look sees.

        known_s: its age, where the world knows better than a clock at random.
        """
        if known_s is not None:
            older = 0.5 + (known_s * 1e6 - self._age_us) / self._interval_us
            return MOMENTS - 1 - min(MOMENTS - 1, max(0, floor(older * MOMENTS)))
        if replica not in self._phases:
            self._phases[replica] = chance_of(Cause.COMMIT, self._seed, replica + 1).random()  # NOBODY has one, too
        passed = (look_us / self._interval_us - self._phases[replica]) % 1.0
        return MOMENTS - 1 - min(MOMENTS - 1, floor(passed * MOMENTS))
