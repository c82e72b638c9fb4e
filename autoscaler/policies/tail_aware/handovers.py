"""Which partitions are on their way to another replica, as far as a policy can know: it has sent them there."""

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation


class Handovers:
    """Remembers when each partition that was moved is expected to be served again."""

    def __init__(self) -> None:
        self._until_s: dict[int, float] = {}

    def begin(self, observation: GroupObservation, owners: dict[int, str]) -> None:
        """Note those that a decision moves."""
        for partition, owner in owners.items():
            if observation.assignment.get(partition) != owner:
                self._until_s[partition] = observation.at_s + observation.rebalance_time_s

    def remaining_s(self, observation: GroupObservation) -> NDArray[np.float64]:
        """Return how long each partition will still pause, 0 for those that are served."""
        return np.array(
            [max(0.0, self._until_s.get(one.partition, 0.0) - observation.at_s) for one in observation.partitions]
        )
