"""What is measured of the group, learned: λ and μ from counters, t_r from the rounds that it went through."""

from autoscaler.estimation.calibration import Coverage, coverage
from autoscaler.estimation.rates import ArrivalRates, ServiceRate, WorkCounters
from autoscaler.estimation.rebalance_time import (
    KINDS,
    Estimate,
    Length,
    RebalanceTimes,
    RebalanceTiming,
)

__all__ = [
    "KINDS",
    "ArrivalRates",
    "Coverage",
    "Estimate",
    "Length",
    "RebalanceTimes",
    "RebalanceTiming",
    "ServiceRate",
    "WorkCounters",
    "coverage",
]
