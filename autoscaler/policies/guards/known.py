"""No arithmetic on what is not a number of events or a rate."""

import math

import numpy as np

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.guards.guard import Guard
from autoscaler.policies.planning import hold


class HoldWhenUnknown(Guard):
    """Holds, and does not even ask the policy, while a figure of the observation makes no sense.

    A world that knows that something is missing raises NotReadyError, and the controller holds. This is for worlds
    that do not know: markers like −1 for "no offset", rates of an interval of no length, numbers that are left out.
    """

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or a hold that names the figure."""
        if wrong := nonsense(observation):
            return hold(observation, f"nothing is decided on what is unknown: {wrong}")
        return self.policy.decide(observation)


def nonsense(observation: GroupObservation) -> str:
    """Name the first figure that cannot be true; empty text when all can."""
    loads = observation.partitions
    for what, value, good in (
        ("number of partitions", len(loads), len(loads) > 0),
        ("service rate", observation.service_rate, 0 < observation.service_rate < math.inf),
        ("rebalance time", observation.rebalance_time_s, 0 <= observation.rebalance_time_s < math.inf),
        ("time", observation.at_s, math.isfinite(observation.at_s)),
    ):
        if not good:
            return f"{what} is {value}"
    numbers = np.fromiter((load.partition for load in loads), np.int64, len(loads))
    if len(gaps := np.flatnonzero(numbers != np.arange(len(loads)))):
        return f"partition {gaps[0]} is not where it should be, {numbers[gaps[0]]} is"
    rates = np.fromiter((load.arrival_rate for load in loads), np.float64, len(loads))
    if len(bad := np.flatnonzero(~((rates >= 0) & np.isfinite(rates)))):
        return f"arrival rate of partition {bad[0]} is {rates[bad[0]]}"
    lags = np.fromiter((load.lag for load in loads), np.float64, len(loads))
    if len(bad := np.flatnonzero(~((lags >= 0) & np.isfinite(lags)))):
        return f"lag of partition {bad[0]} is {lags[bad[0]]:g}"
    return ""
