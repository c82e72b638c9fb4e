"""A solution of lesson 1: One burst."""

import math


def largest_burst(service_rate: float, target_s: float) -> int:
    return math.floor(service_rate * target_s + 1e-9)  # event k is done after k / service_rate seconds
