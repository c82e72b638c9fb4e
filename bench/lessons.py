"""What the rounds of a run teach the autoscaler's learner of rebalance times."""

from collections.abc import Iterable

from autoscaler.estimation.rebalance_time import RebalanceTiming
from report.rebalance_times import RebalanceRound


def lessons(rounds: Iterable[RebalanceRound]) -> list[RebalanceTiming]:
    """Return the rounds of which a length is known; what is not known is 0, which teaches nothing."""
    return [
        RebalanceTiming(
            kind=one.kind,
            members=one.members,
            moved=one.moved,
            pause_s=one.pause_s or 0.0,
            plan_to_ready_s=one.plan_to_ready_s or 0.0,
        )
        for one in rounds
        if one.pause_s or one.plan_to_ready_s
    ]
