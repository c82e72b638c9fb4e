"""Rebalance time (t_r) of a group: how long a planned handover delays events, learned from its replicas' reports."""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

QUANTILE: Final = 0.99
"""Quantile of the pauses that counts as t_r, as in the papers (CLOSER 2024: 50 ms)."""
MAX_PAUSES: Final = 200
"""Number of the newest pauses that are kept."""
MIN_PAUSES: Final = 30
"""Pauses that must be observed before they replace the setting."""
MAX_PAUSE_S: Final = 60.0  # a longer pause is an error of a clock: each rebalance ends within its time-out


class RebalanceTime:
    """Estimates t_r as the p99 of the newest planned pauses. Before `MIN_PAUSES` of them, t_r is `fixed_s`.

    fixed_s: t_r from the settings, always used if `learn` is False. warn: called with one sentence when the learned
    time reaches the latency target, and not again until it has fallen below the target.
    """

    def __init__(self, fixed_s: float, *, learn: bool, latency_target_s: float, warn: Callable[[str], None]) -> None:
        self._fixed_s, self._learn, self._latency_target_s = fixed_s, learn, latency_target_s
        self._warn = warn
        self._warned = False
        self._pauses_s = deque[float](maxlen=MAX_PAUSES)
        self.pause_count = 0

    def observe(self, pauses_s: Iterable[float]) -> None:
        """Add the reported pauses (s) of partitions that a plan moved. Pauses of 0 or above MAX_PAUSE_S are ignored."""
        for pause_s in pauses_s:
            if 0 < pause_s <= MAX_PAUSE_S:
                self._pauses_s.append(pause_s)
                self.pause_count += 1

    @property
    def learned_s(self) -> float | None:
        """The p99 of the newest pauses, seconds: the longest if there are fewer than 199. None before `MIN_PAUSES`."""
        if self.pause_count < MIN_PAUSES:
            return None
        rank = math.ceil((len(self._pauses_s) + 1) * QUANTILE - 1e-9)
        return sorted(self._pauses_s)[min(rank, len(self._pauses_s)) - 1]

    def planned_s(self) -> float:
        """Return the t_r that policies use, seconds."""
        learned_s = self.learned_s
        if learned_s is None:
            return self._fixed_s
        late = learned_s >= self._latency_target_s
        if late and not self._warned:
            self._warn(
                f"{QUANTILE:.0%} of the planned handovers pause a partition for up to {learned_s:.3g} s, which reaches "
                f"the latency target of {self._latency_target_s:g} s: events of a partition that moves can be late"
            )
        self._warned = late
        return learned_s if self._learn else self._fixed_s
