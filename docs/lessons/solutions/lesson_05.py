"""A solution of lesson 5: The price of a rebalance."""

import math


def moves_per_minute(late_per_move: list[int], rate: float, allowed_share: float) -> int:
    mean = sum(late_per_move) / len(late_per_move)
    return math.floor(allowed_share * rate * 60 / mean + 1e-9)
