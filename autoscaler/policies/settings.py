"""What policies and guards can be told, and who decides within which limits."""

from dataclasses import dataclass
from typing import ClassVar, Final

from contracts.settings import Rule, Rules, Settings, Target, Values, setting

REPLICA_PREFIX: Final = "payment"


def _down_below_up(values: Values) -> str | None:
    up = values["f_up"]
    return None if values["f_down"] <= up else f"is more than f_up = {up:g}: the group would shrink and grow in turn"


def _below_maximum(name: str) -> Rule:
    def rule(values: Values) -> str | None:
        most = values["max_replicas"]
        return f"is more than max_replicas = {most}" if 0 < most < values[name] else None

    return rule


def _tick_inside_interval(values: Values) -> str | None:
    interval_s = values["decision_interval_s"]
    return None if values["tick_offset_s"] < interval_s else f"is not less than decision_interval_s = {interval_s:g}"


def _initial_within_bounds(values: Values) -> str | None:
    least, most = values["min_replicas"], values["max_replicas"]
    fits = least <= values["initial_replicas"] and (not most or values["initial_replicas"] <= most)
    return None if fits else f"is outside {least} to {most or 'the number of partitions'}"


@dataclass(frozen=True, kw_only=True)
class Factors(Settings):
    """How much of a replica may be used."""

    f_up: float = setting(0.9, "share", above=0, most=1)
    """Share of a replica that a plan may use; beyond it replicas are added. CLOSER 2024: 10 % in reserve."""
    f_down: float = setting(0.4, "share", above=0, most=1)
    """Share of a replica that a smaller group may use before replicas are removed; far below f_up, so that a group that
    has just shrunk does not grow again at once."""
    RULES: ClassVar[Rules] = (("f_down", _down_below_up),)


@dataclass(frozen=True, kw_only=True)
class StaticSettings(Settings):
    """What `static` is told."""

    static_replicas: int = setting(1, "replicas", least=1)
    """Replicas that `static` keeps."""


@dataclass(frozen=True, kw_only=True)
class PolicySettings(Target, Factors, StaticSettings):
    """Parameters that all policies share; each reads those that concern it."""

    replica_prefix: str = setting(REPLICA_PREFIX)
    """New replicas are named prefix-<smallest unused ordinal>."""


@dataclass(frozen=True, kw_only=True)
class Limits(Settings):
    """How many replicas there may be, and how soon their number may change again."""

    min_replicas: int = setting(1, "replicas", least=1)
    """Fewest replicas; somebody owns the partitions in silence too."""
    max_replicas: int = setting(0, "replicas", least=0)
    """Most replicas; 0: as many as there are partitions, the cap in any case."""
    cool_down_up_s: float = setting(0.0, "s", least=0)
    """After any scaling no replica is added for so long; the experiments of CLOSER 2024 ran with 10."""
    cool_down_down_s: float = setting(0.0, "s", least=0)
    """After any scaling no replica is removed for so long."""
    RULES: ClassVar[Rules] = (("min_replicas", _below_maximum("min_replicas")),)


@dataclass(frozen=True, kw_only=True)
class Guards(Settings):
    """Rails around any policy."""

    changing_limit_s: float = setting(30.0, "s", least=0)
    """For so long a replica that is not ready may hold back stops and reassignments: ten times a slow start; after that
    it is a fault, and the group goes on without it."""
    stabilisation_down_s: float = setting(0.0, "s", least=0)
    """Down only to the most replicas wanted within so long; 0: off; Kubernetes has 300. Worth its price where the group
    stops as a whole: with t_r = 2 s and a load like a sine, 60 s keep 99.8 % in time instead of 97.2 for 13 % more
    replica-minutes (Algorithm 2)."""
    stuck_after_s: float = setting(30.0, "s", least=0)
    """A partition with lag but without progress for so long, while its owner lives, is an alert and no reason to scale;
    0: off. Beyond the 15 s after which a hung replica is replaced."""
    fallback_down_s: float = setting(60.0, "s", least=0)
    """While the policy fails, a count by rate and lag stands in for it: a replica is stopped only once fewer have
    sufficed for so long."""
    safe_replicas: int = setting(0, "replicas", least=0)
    """While the policy fails, no fewer than so many; 0: no such limit."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings(Limits, Guards):
    """All that the guards are told, by users and by the world that they guard."""

    counts_only: bool = False
    """The group places its partitions itself: decisions name a count and no owners."""
    fallback: bool = True
    """Where the policy fails, a count stands in for it; off, its error ends the loop, as experiments want it."""
    RULES: ClassVar[Rules] = (("safe_replicas", _below_maximum("safe_replicas")),)


@dataclass(frozen=True, kw_only=True)
class Scaling(Factors, Limits):
    """Who decides, how often and within which limits."""

    policy: str
    """Name of the policy; `tailpack list policies` lists them."""
    decision_interval_s: float = setting(1.0, "s", least=0.1, most=60)
    """Time between two decisions."""
    tick_offset_s: float = setting(0.1, "s", least=0)
    """Ticks fall so long after multiples of the interval: bursts of a load begin at whole seconds, and a decision shall
    see a burst whole, before the next one."""
    initial_replicas: int = setting(1, "replicas", least=1)
    """Replicas at the start; `static` keeps them."""
    rebalance_time_s: float = setting(0.05, "s", least=0)
    """t_r that policies plan for until it is learned; CLOSER 2024 measured 50 ms at its p99."""
    learn_rebalance_time: bool = setting(True)
    """Policies plan for the t_r that this very group shows (p99); off where a published experiment is repeated."""
    absence_grace_s: float = setting(0.0, "s", least=0)
    """For so long the partitions of a replica that died wait for its return; 0: others take them at once."""
    RULES: ClassVar[Rules] = (("tick_offset_s", _tick_inside_interval), ("initial_replicas", _initial_within_bounds))
