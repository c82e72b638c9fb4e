"""t_r of this very group: how long a planned handover makes events wait, learned from what its replicas report."""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

QUANTILE: Final = 0.99
"""What the papers take of the rebalance time, too (CLOSER 2024: 50 ms)."""
MAX_PAUSES: Final = 200
MIN_PAUSES: Final = 30
"""Pauses that must be seen before they count for more than the setting."""


class RebalanceTime:
    """The p99 of the newest planned pauses; the setting until enough of them were seen.

    fixed_s: the setting, and the answer always where `learn` is False. warn: called with one sentence when the learned
    time reaches the latency target, once until it has fallen again.
    """

    def __init__(self, fixed_s: float, *, learn: bool, latency_target_s: float, warn: Callable[[str], None]) -> None:
        self._fixed_s = fixed_s
        self._learn = learn
        self._latency_target_s = latency_target_s
        self._warn = warn
        self._warned = False
        self._pauses_s = deque[float](maxlen=MAX_PAUSES)
        self.pause_count = 0

    def observe(self, pauses_s: Iterable[float]) -> None:
        """Take in the pauses that replicas report of partitions that a plan gave them; 0: it was not measured."""
        for pause_s in pauses_s:
            if pause_s > 0:
                self._pauses_s.append(pause_s)
                self.pause_count += 1

    @property
    def learned_s(self) -> float | None:
        """The p99 of the pauses remembered, of few the longest; None: too few were seen."""
        if self.pause_count < MIN_PAUSES:
            return None
        rank = math.ceil((len(self._pauses_s) + 1) * QUANTILE - 1e-9)
        return sorted(self._pauses_s)[min(rank, len(self._pauses_s)) - 1]

    def planned_s(self) -> float:
        """Return the t_r that policies shall plan for."""
        learned_s = self.learned_s
        if learned_s is None:
            return self._fixed_s
        late = learned_s >= self._latency_target_s
        if late and not self._warned:
            self._warn(
                f"{QUANTILE:.0%} of the planned handovers pause a partition for up to {learned_s:.3g} s, which reaches "
                f"the latency target of {self._latency_target_s:g} s: an event of a partition that moves can be late"
            )
        self._warned = late
        return learned_s if self._learn else self._fixed_s
