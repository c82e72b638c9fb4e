"""Settings of a simulated run. See docs/explanation/simulator-and-optimum.md."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from autoscaler.model import Action
from contracts.membership import EventCost, ReplicaSpeeds
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.settings import Settings, setting

STOPPING_PROTOCOLS: Final = (RebalanceProtocol.EAGER, RebalanceProtocol.RANGE, RebalanceProtocol.LED_EAGER)
"""Rebalance protocols by which a change of owners stops every replica."""


class Distribution(StrEnum):
    """Distribution of the service time of an event."""

    DETERMINISTIC = "deterministic"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"
    PARETO = "pareto"


@dataclass(frozen=True, kw_only=True)
class ServiceShape(ReplicaSpeeds):
    """Variation of service times."""

    distribution: Distribution = setting(Distribution.DETERMINISTIC)
    """Distribution of the service time."""
    overhead_s: float = setting(0.0, "s", least=0)
    """Time added to each event. The replicas of CLOSER 2024 had 0.0007 (μ about 174)."""
    lognormal_sigma: float = setting(1.0, above=0)
    """Standard deviation of the logarithm."""
    pareto_shape: float = setting(2.5, above=2)
    """Tail index. Above 2 the variance exists."""
    shared_limits: tuple[float, ...] = setting((), "events/s", above=0)
    """Successive limits of all replicas together. The last limit remains. Policies see longer service times."""
    shared_limit_s: float = setting(300.0, "s", above=0)
    """Duration of each of these limits."""


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(EventCost, ServiceShape):
    """All settings of service times."""


@dataclass(frozen=True, kw_only=True)
class RebalanceSettings(Settings):
    """Settings of the rebalance models."""

    rebalance_protocol: RebalanceProtocol = setting(RebalanceProtocol.INCREMENTAL)
    """Rebalance protocol that carries out plans."""
    pause_s: float = setting(0.05, "s", least=0)
    """Incremental: pause of a moved partition, from its last finished event to the first that can start."""
    rebalance_time_s: float = setting(0.05, "s", least=0)
    """Other protocols: duration of a rebalance once all members have joined (t_r)."""
    heartbeat_s: float = setting(0.0, "s", least=0)
    """Interval of the heartbeats at which members notice a rebalance; 0: at once."""

    @property
    def stops_all(self) -> bool:
        """Whether a change of owners stops every replica."""
        return self.rebalance_protocol in STOPPING_PROTOCOLS

    @property
    def model_rebalance_time_s(self) -> float:
        """t_r of the model: how long a partition that moves is not served, seconds."""
        return self.pause_s if self.rebalance_protocol is RebalanceProtocol.INCREMENTAL else self.rebalance_time_s


@dataclass(frozen=True, slots=True)
class Failure:
    """The death of a replica."""

    at_s: float
    known: bool = True
    """Whether the autoscaler sees it at once and the group evicts it after eviction_s; else its session must expire."""


@dataclass(frozen=True, kw_only=True)
class ObservationSettings(Settings):
    """Errors and delays of observations."""

    observation_delay_s: float = setting(0.0, "s", least=0)
    """Age of observed offsets."""
    observation_loss: float = setting(0.0, "share", least=0, most=1)
    """Share of ticks without any observation."""
    commit_age_s: float = setting(0.0, "s", least=0)
    """Additional age of observed commits: on average half of the commit interval. Policies get this value."""
    service_rate_error: float = setting(0.0, "share", above=-1)
    """Relative error of the service rate that policies get. Positive is too high."""
    planned_startup_s: float | None = setting(None, "s", least=0)
    """Start-up time that policies get; none: the true time, 0 if it is sampled."""
    startup_each_s: float = setting(0.0, "s", least=0)
    """Further time of a start for each other replica that starts meanwhile."""


@dataclass(frozen=True, kw_only=True)
class SimulationSettings(ObservationSettings):
    """All settings of a simulation."""

    service: ServiceSettings = field(default_factory=ServiceSettings)
    rebalance: RebalanceSettings = field(default_factory=RebalanceSettings)
    startup_s: float | None = setting(0.0, "s", least=0)
    """Time from the request of a replica until it can serve; None: sampled as measured on GKE, 88 % in 10 to 50 s."""
    latency_target_s: float = setting(0.5, "s", above=0)
    """Latency target (W). Replicas report how many events took longer."""
    decision_interval_s: float = setting(1.0, "s", above=0)
    """Time between two ticks."""
    tick_offset_s: float = setting(0.1, "s", least=0)
    """Delay of ticks after multiples of the interval."""
    slot_s: float = setting(0.1, "s", above=0)
    """Resolution of `GroupObservation.recent`."""
    initial_replicas: int = setting(1, "replicas", least=1)
    """Replicas at the start."""
    planned_rebalance_time_s: float | None = setting(None, "s", least=0)
    """t_r that policies get; None: that of the model (pause_s of incremental, else rebalance_time_s)."""
    failures: tuple[Failure, ...] = ()
    """Deaths. Each kills the ready replica that has most partitions at that time."""
    session_s: float = setting(6.0, "s", least=0)
    """Time until an unannounced death is noticed."""
    eviction_s: float = setting(0.1, "s", least=0)
    """Time until the group evicts a replica whose death is known."""
    seed: int = setting(1, least=0)
    """Seed of all random values."""

    @property
    def policy_rebalance_time_s(self) -> float:
        """t_r that policies get, seconds."""
        planned_s = self.planned_rebalance_time_s
        return self.rebalance.model_rebalance_time_s if planned_s is None else planned_s

    @property
    def policy_startup_s(self) -> float:
        """Start-up time that policies get, seconds."""
        return (self.startup_s or 0.0) if self.planned_startup_s is None else self.planned_startup_s


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that was carried out."""

    at_s: float
    action: Action
    replicas: int
    moved: int
