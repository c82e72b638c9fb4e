"""t_r of this very group: learned from the rounds that its replicas report, told to the policies, compared with W."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from autoscaler.estimation.rebalance_time import Estimate, RebalanceTimes, RebalanceTiming
from contracts.progress import Round, RoundKind

QUANTILE: Final = 0.99
"""What the papers take of the rebalance time, too (CLOSER 2024: 50 ms)."""
MERGE_S: Final = 0.5
"""All who took part in a round report it within two report intervals; then it is complete."""


def timing_of(reports: Sequence[Round]) -> RebalanceTiming | None:
    """Return what the reports of one round say together: the longest lengths.

    None where no partition was taken over, or a report makes no sense.
    """
    if not any(one.taken for one in reports):
        return None
    try:
        return RebalanceTiming(
            kind=reports[0].kind.value,
            members=max(one.members for one in reports),
            moved=max(one.moved for one in reports),
            pause_s=max(0, *(one.pause_us for one in reports)) / 1e6,
            plan_to_ready_s=max(0, *(one.plan_us for one in reports)) / 1e6,
        )
    except ValueError:
        return None


class Rebalances:
    """Says how long a planned handover makes events wait.

    fixed_s: the answer until enough was seen, and always where `learn` is False.
    known: what an earlier controller has learned of this group.
    warn: called with one sentence when the learned time reaches the latency target, once until it has fallen again.
    """

    def __init__(
        self,
        fixed_s: float,
        *,
        learn: bool,
        latency_target_s: float,
        warn: Callable[[str], None],
        known: Iterable[RebalanceTiming] = (),
        clock: Callable[[], float],
    ) -> None:
        self._fixed_s = fixed_s
        self._learn = learn
        self._latency_target_s = latency_target_s
        self._warn = warn
        self._clock = clock
        self._times = RebalanceTimes()
        for timing in known:
            self._times.observe(timing)
        self._open: dict[tuple[int, int], tuple[float, list[Round]]] = {}
        """When a round was first reported, and what several replicas say of it."""
        self._warned = False
        self.rounds = 0
        """Rounds learned from, of all kinds; those of an earlier controller are not among them."""

    def observe(self, rounds: Iterable[Round]) -> None:
        """Take in what replicas report, and learn from the rounds that all of them have reported."""
        now_s = self._clock()
        for one in rounds:
            self._open.setdefault((one.epoch, one.generation), (now_s, []))[1].append(one)
        for key, (first_s, reports) in list(self._open.items()):
            if now_s - first_s >= MERGE_S:
                del self._open[key]
                if (timing := timing_of(reports)) is not None:
                    self._times.observe(timing)
                    self.rounds += 1

    def remembered(self) -> tuple[RebalanceTiming, ...]:
        """Return what a later controller shall know."""
        return self._times.remembered()

    def learned(self, members: int, moved: int) -> Estimate | None:
        """Return the p99 of the pause in a planned round; None: nothing is known but the setting."""
        return self._times.quantile(QUANTILE, RoundKind.PLAN.value, max(1, members), moved)

    def rebalance_time_s(self, members: int, moved: int) -> float:
        """Return the t_r that policies shall plan for, in seconds."""
        estimate = self.learned(members, moved)
        if estimate is None:
            return self._fixed_s
        late = estimate.value_s >= self._latency_target_s
        if late and not self._warned:
            self._warn(
                f"{100 * QUANTILE:g} % of plan rounds with {members} members and {moved} moved pause up to "
                f"{estimate.value_s:.3g} s (learned from {estimate.samples} rounds), which reaches the latency target "
                f"of {self._latency_target_s:g} s: an event of a partition that moves can be late with none before it"
            )
        self._warned = late
        return estimate.value_s if self._learn else self._fixed_s
