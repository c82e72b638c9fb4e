"""What is measured of the group, learned: λ and its envelope, μ, t_r; and what is to be expected of λ."""

from autoscaler.estimation.calibration import Coverage, coverage
from autoscaler.estimation.envelope import Envelope
from autoscaler.estimation.forecast import GuardedForecast, Holt
from autoscaler.estimation.rates import ArrivalRates, WorkCounters
from autoscaler.estimation.rebalance_time import (
    KINDS,
    Estimate,
    Length,
    RebalanceTimes,
    RebalanceTiming,
)
from autoscaler.estimation.service_rates import RateEstimate, ServiceRates

__all__ = [
    "KINDS",
    "ArrivalRates",
    "Coverage",
    "Envelope",
    "Estimate",
    "GuardedForecast",
    "Holt",
    "Length",
    "RateEstimate",
    "RebalanceTimes",
    "RebalanceTiming",
    "ServiceRates",
    "WorkCounters",
    "coverage",
]
