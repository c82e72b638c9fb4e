"""A solution of lesson 2: Lag is not latency."""

import math


def longest_interval_s(rate: float, capacity: float, target_s: float) -> float:
    if rate <= capacity:
        return math.inf
    return target_s * capacity / (rate - capacity)  # the backlog grows by rate - capacity, and is served at capacity
