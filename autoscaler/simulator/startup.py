"""How long a replica takes from its request until it could serve."""

from dataclasses import dataclass
from typing import Final

from autoscaler.simulator.chance import Cause, chance_of

QUICK_SHARE: Final = 0.88
QUICK_S: Final = (10.0, 50.0)
SLOW_S: Final = (50.0, 120.0)
"""Start-up as measured on GKE: 88 % of pods in 10 to 50 s, the rest above; uniform inside each range."""


@dataclass(frozen=True, slots=True)
class StartUp:
    """Start-up times of a run. fixed_s: always that, seconds; None: sampled."""

    fixed_s: float | None
    seed: int

    def seconds(self, request: int) -> float:
        """Return how long request number `request` (from 0) takes. It depends on nothing else that happens."""
        if self.fixed_s is not None:
            return self.fixed_s
        chance = chance_of(Cause.START_UP, self.seed, request)
        low_s, high_s = QUICK_S if chance.random() < QUICK_SHARE else SLOW_S
        return float(chance.uniform(low_s, high_s))
