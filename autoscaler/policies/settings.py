"""Settings of policies and guards."""

from dataclasses import dataclass
from typing import ClassVar, Final

from contracts.settings import Rule, Rules, Settings, Target, Values, must, setting

REPLICA_PREFIX: Final = "payment"
DOWN_BELOW_UP: Final = must(
    "f_down",
    lambda of: of["f_down"] <= of["f_up"],
    "must not exceed f_up = {f_up:g}, or the group would shrink and grow in turn",
)
TICK_INSIDE_INTERVAL: Final = must(
    "tick_offset_s",
    lambda of: of["tick_offset_s"] < of["decision_interval_s"],
    "must be less than decision_interval_s = {decision_interval_s:g}",
)


def _below_maximum(name: str) -> Rule:
    def rule(values: Values) -> str | None:
        most = values["max_replicas"]
        return f"must not exceed max_replicas = {most}" if 0 < most < values[name] else None

    return rule


def _initial_within_bounds(values: Values) -> str | None:
    least, most = values["min_replicas"], values["max_replicas"]
    initial = values["initial_replicas"] or least
    fits = least <= initial and (not most or initial <= most)
    return None if fits else f"must be from {least} to {most or 'the number of partitions'}"


@dataclass(frozen=True, kw_only=True)
class Factors(Settings):
    """Shares of a replica's capacity that may be used."""

    f_up: float = setting(0.9, "share", above=0, most=1)
    """Share of a replica's capacity that a plan may use. CLOSER 2024 keeps 10 % in reserve."""
    f_down: float = setting(0.4, "share", above=0, most=1)
    """Share of capacity that a smaller group may use before replicas are removed. A low value prevents flapping."""
    RULES: ClassVar[Rules] = (DOWN_BELOW_UP,)


@dataclass(frozen=True, kw_only=True)
class StaticSettings(Settings):
    """Settings of `static`."""

    static_replicas: int = setting(1, "replicas", least=1)
    """Replicas that `static` keeps."""


@dataclass(frozen=True, kw_only=True)
class PolicySettings(Target, Factors, StaticSettings):
    """Settings that policies share. Each reads those that it needs."""

    replica_prefix: str = setting(REPLICA_PREFIX)
    """New replicas are named prefix-<smallest unused ordinal>."""


@dataclass(frozen=True, kw_only=True)
class Limits(Settings):
    """Limits of the number of replicas, and minimum times between changes."""

    min_replicas: int = setting(1, "replicas", least=1)
    """Minimum number of replicas, also without events."""
    max_replicas: int = setting(0, "replicas", least=0)
    """Maximum number of replicas; 0: one for each partition, which is never exceeded."""
    cool_down_up_s: float = setting(0.0, "s", least=0)
    """Time after any scaling in which no replica is added. CLOSER 2024 used 10."""
    cool_down_down_s: float = setting(0.0, "s", least=0)
    """Time after any scaling in which no replica is removed."""
    max_step_up: int = setting(0, "replicas", least=0)
    """Most replicas that one decision adds; 0: any number."""
    max_step_down: int = setting(0, "replicas", least=0)
    """Most replicas that one decision removes; 0: any number."""
    moves_per_minute: int = setting(0, "partitions", least=0)
    """Most partitions that change their owner within a minute; 0: any number."""
    RULES: ClassVar[Rules] = (("min_replicas", _below_maximum("min_replicas")),)


@dataclass(frozen=True, kw_only=True)
class Guards(Settings):
    """Settings of the guards around every policy."""

    changing_limit_s: float = setting(30.0, "s", least=0)
    """Longest time that a replica which is not ready may block scale-down and reassignment. Later it is ignored."""
    stabilisation_down_s: float = setting(0.0, "s", least=0)
    """Scale down only to the maximum wanted within this time; 0: off. Kubernetes uses 300. Useful if each rebalance
    stops the group."""
    stuck_after_s: float = setting(30.0, "s", least=0)
    """Time without progress after which a partition with lag is reported, and ignored by policies, if its owner lives;
    0: off."""
    fallback_down_s: float = setting(60.0, "s", least=0)
    """If the policy fails, a count by rate and lag replaces it. It removes a replica only if fewer sufficed for this
    time."""
    safe_replicas: int = setting(0, "replicas", least=0)
    """Minimum number of replicas while the policy fails; 0: no minimum."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings(Limits, Guards):
    """All settings of the guards: those of users, and those that the environment determines."""

    counts_only: bool = False
    """Whether the group places its partitions itself: decisions have a count and no owners."""
    fallback: bool = True
    """Whether a count replaces the decision of a policy that fails; else its error ends the loop (experiments)."""
    RULES: ClassVar[Rules] = (("safe_replicas", _below_maximum("safe_replicas")),)


@dataclass(frozen=True, kw_only=True)
class Scaling(Factors, Limits):
    """The policy, the times of its decisions, and the limits of the group."""

    policy: str
    """Name of the policy. `tailpack list policies` lists them."""
    decision_interval_s: float = setting(1.0, "s", least=0.1, most=60)
    """Time between two decisions."""
    tick_offset_s: float = setting(0.1, "s", least=0)
    """Delay of a decision after a multiple of the interval, so that it sees a burst at a whole second completely."""
    initial_replicas: int = setting(0, "replicas", least=0)
    """Replicas at the start; 0: `min_replicas`. `static` keeps them."""
    rebalance_time_s: float = setting(0.05, "s", least=0)
    """Rebalance time (t_r) that policies assume until it is learned. CLOSER 2024 measured 50 ms at p99."""
    learn_rebalance_time: bool = setting(True)
    """Policies use the measured rebalance time (p99). False repeats published experiments."""
    absence_grace_s: float = setting(0.0, "s", least=0)
    """Time that the partitions of a dead replica wait for its return; 0: others take over at once."""
    RULES: ClassVar[Rules] = (TICK_INSIDE_INTERVAL, ("initial_replicas", _initial_within_bounds))

    def __post_init__(self) -> None:
        if not self.initial_replicas:
            object.__setattr__(self, "initial_replicas", self.min_replicas)
        super().__post_init__()
