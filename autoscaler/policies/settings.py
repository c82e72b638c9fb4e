"""What policies and guards can be told."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Parameters of the policies of `registry`; each reads those that concern it.

    Raises ValueError naming every value that is out of range.
    """

    latency_target_s: float = 0.5
    """W, seconds: the lag that a replica may hold is what it serves in that time. 0.5 is the papers' target."""
    percentile: float = 0.999
    """q: the share of events that must be within W. Of the papers' 99.9 %."""
    f_up: float = 0.9
    """Share of a replica that a plan may use; beyond it replicas are added. CLOSER 2024: 10 % in reserve."""
    f_down: float = 0.4
    """Share of a replica that a smaller group may use before replicas are removed. CLOSER 2024; far below `f_up`, so
    that a group that has just shrunk does not grow again at once."""
    replica_prefix: str = "payment"
    """New replicas are named prefix-<smallest unused ordinal>."""
    static_replicas: int = 1
    """Replicas that `static` keeps."""

    def __post_init__(self) -> None:
        wrong = []
        if not self.latency_target_s > 0:
            wrong.append(f"latency_target_s = {self.latency_target_s}: must be more than 0 s")
        if not 0 < self.percentile <= 1:
            wrong.append(f"percentile = {self.percentile}: must be more than 0, at most 1")
        if not 0 < self.f_down <= self.f_up <= 1:
            wrong.append(f"f_down = {self.f_down}, f_up = {self.f_up}: must be 0 < f_down ≤ f_up ≤ 1")
        if self.static_replicas < 1:
            wrong.append(f"static_replicas = {self.static_replicas}: must be at least 1")
        if wrong:
            raise ValueError("; ".join(wrong))


GUARD_UNITS: Final = (
    ("cool_down_up_s", " s"),
    ("cool_down_down_s", " s"),
    ("changing_limit_s", " s"),
    ("stabilisation_down_s", " s"),
    ("stuck_after_s", " s"),
    ("no_help_after_s", " s"),
    ("fallback_after_s", " s"),
    ("safe_replicas", " replicas"),
)
"""Guard settings that must not be negative."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Rails around any policy. Raises ValueError naming every value that is out of range."""

    minimum: int = 1
    """Fewest replicas. 1: somebody owns the partitions also in silence."""
    maximum: int = 0
    """Most replicas; 0: as many as there are partitions, which is the hard cap in any case."""
    cool_down_up_s: float = 0.0
    """Seconds after any scaling before replicas are added again. Off; the CLOSER 2024 experiments ran with 10."""
    cool_down_down_s: float = 0.0
    """Seconds after any scaling before replicas are removed. Off; see `cool_down_up_s`."""
    changing_limit_s: float = 30.0
    """Seconds for which a replica that is not ready may hold back DOWN and REASSIGN. Ten times a slow start: after
    that it is a fault, and the group must go on without waiting for it."""
    counts_only: bool = False
    """The group places its partitions itself: decisions name a count and no owners."""
    stabilisation_down_s: float = 0.0
    """Down only to the most replicas wanted within so many seconds. Off; Kubernetes has 300. Worth its price where the
    group stops as a whole: with t_r = 2 s and a load like a sine, 60 s keep 99.8 % in time instead of 97.2 for 13 %
    more replica-minutes (Algorithm 2)."""
    stuck_after_s: float = 30.0
    """A partition with lag but without progress for so many seconds, while its owner lives, is an alert and no reason
    to scale. 0: off. Far beyond any poll, and beyond the 15 s after which a hung replica is replaced."""
    no_help_after_s: float = 10.0
    """A scale-up that did not help is named so many seconds after its replicas were ready. 0: off."""
    fallback: bool = True
    """Where the policy fails, the last good plan stays; off, its error ends the loop, as experiments want it."""
    fallback_after_s: float = 60.0
    """Seconds of failure after which the last good plan gives way to a safe count."""
    safe_replicas: int = 0
    """That count; 0: the most that any good plan had."""

    def __post_init__(self) -> None:
        wrong = []
        if self.minimum < 1:
            wrong.append(f"minimum = {self.minimum}: must be at least 1 replica")
        if self.maximum < 0 or 0 < self.maximum < self.minimum:
            wrong.append(f"maximum = {self.maximum}: must be 0 (the partitions) or at least minimum = {self.minimum}")
        for name, unit in GUARD_UNITS:
            if not getattr(self, name) >= 0:
                wrong.append(f"{name} = {getattr(self, name)}: must be 0{unit} or more")
        if 0 < self.maximum < self.safe_replicas:
            wrong.append(f"safe_replicas = {self.safe_replicas}: must be at most maximum = {self.maximum}")
        if wrong:
            raise ValueError("; ".join(wrong))
