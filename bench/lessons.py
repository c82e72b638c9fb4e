"""What the rounds of a run teach the autoscaler's learner of rebalance times."""

from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.estimation.rebalance_time import RebalanceTiming
from report.rebalance_times import RebalanceRound


@dataclass(slots=True)  # what is saved has a number of rounds that grows (autoscaler.live.state_dir.Learner)
class Lessons:
    """Rounds in the learner's form, the oldest first; autoscaler.live.state_dir writes them."""

    timings: tuple[RebalanceTiming, ...]
    rounds: int
    """How many there are."""

    def remembered(self) -> tuple[RebalanceTiming, ...]:
        """Return them all."""
        return self.timings


def lessons(rounds: Iterable[RebalanceRound]) -> Lessons:
    """Return the rounds of which a length is known; what is not known is 0, which teaches nothing."""
    timings = tuple(
        RebalanceTiming(
            kind=one.kind,
            members=one.members,
            moved=one.moved,
            pause_s=one.pause_s or 0.0,
            plan_to_ready_s=one.plan_to_ready_s or 0.0,
        )
        for one in rounds
        if one.pause_s or one.plan_to_ready_s
    )
    return Lessons(timings, len(timings))
