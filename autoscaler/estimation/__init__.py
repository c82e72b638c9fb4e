"""What is measured of the group, learned: arrival rates λ, service rates μ, rebalance times t_r."""

from autoscaler.estimation.rates import ArrivalRates, WorkCounters
from autoscaler.estimation.rebalance_time import KINDS, Estimate, RebalanceTimes, RebalanceTiming
from autoscaler.estimation.service_rates import RateEstimate, ServiceRates

__all__ = [
    "KINDS",
    "ArrivalRates",
    "Estimate",
    "RateEstimate",
    "RebalanceTimes",
    "RebalanceTiming",
    "ServiceRates",
    "WorkCounters",
]
