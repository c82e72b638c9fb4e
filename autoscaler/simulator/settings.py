"""What a simulated world is told. Defaults are those under which policies are compared (docs/model.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from autoscaler.model import Action
from contracts.delivery import Delivery


class Assignor(StrEnum):
    """Who gets what under a plan that states a count only."""

    STICKY = "sticky"
    """Equal counts, and as few moves as that allows."""
    RANGE = "range"
    """Consecutive partitions, counts that differ by one at most."""
    UNIFORM = "uniform"
    """KIP-848's default: equal counts, sticky from then on."""


class Distribution(StrEnum):
    """Of the service time of an event."""

    DETERMINISTIC = "deterministic"
    EXPONENTIAL = "exponential"
    PARETO = "pareto"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How long serving takes. Times in seconds."""

    service_time_s: float = 0.005
    """Mean of what the distribution gives."""
    distribution: Distribution = Distribution.DETERMINISTIC
    overhead_s: float = 0.0
    """Added to each; CLOSER 2024 served 5 ms with 0.7 ms of it (μ about 174)."""
    pareto_shape: float = 2.5
    """Tail index; above 2, so that the variance exists."""
    speeds: tuple[float, ...] = (1.0,)
    """Replica number r has speeds[r mod len]: two of them make every other replica a slow one."""
    slow_from_s: float = 0.0
    slow_until_s: float = 0.0
    """While service starts in [from, until) it takes `slow_factor` times as long."""
    slow_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Parameters of the delivery models, seconds."""

    delivery: Delivery = Delivery.INCREMENTAL
    pause_s: float = 0.05
    """Incremental: of a moved partition, from the last event finished to the next one that can start."""
    rebalance_time_s: float = 0.05
    """t_r of the others: how long a round takes once everybody has joined it."""
    heartbeat_s: float = 0.0
    """Members learn of a round at their next heartbeat; 0: at once."""
    notice_s: float = 0.0
    """Incremental: from a decision until the owner of a partition that moves stops serving it."""
    whole_batches: bool = False
    """Share: a consumer acquires whole producer batches, as measured, instead of single events."""

    @property
    def own_rebalance_time_s(self) -> float:
        """t_r that the delivery itself stands for: what a partition that moves is not served for, seconds."""
        return self.pause_s if self.delivery is Delivery.INCREMENTAL else self.rebalance_time_s


@dataclass(frozen=True, slots=True)
class Failure:
    """A replica dies."""

    at_s: float
    known: bool = True
    """The scaler sees it at once and the others evict it after `eviction_s`; else its session must expire."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """One world. Raises ValueError naming every value that is out of range."""

    service: ServiceSettings = field(default_factory=ServiceSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    startup_s: float | None = 0.0
    """From the request of a replica until it could serve; None: sampled as measured on GKE, 88 % in 10 to 50 s."""
    stop_s: float = 0.0
    """From the plan that no longer names a replica until it is gone, if it has nothing to finish then: so long it is
    paid."""
    decision_interval_s: float = 1.0
    tick_offset_s: float = 0.1
    observation_delay_s: float = 0.0
    """Offsets are seen as they were so long ago."""
    observation_loss: float = 0.0
    """Share of ticks at which nothing can be observed."""
    commit_age_s: float = 0.0
    """Commits are seen as they were so long before the offsets beside them, so what was finished since still counts as
    lag. Where replicas commit at intervals: half of one, on average."""
    commit_interval_s: float = 0.0
    """Each replica commits by a clock of its own, once in so long: what is seen of it is up to half of that older or
    younger than `commit_age_s`. 0: all are seen as old."""
    slot_s: float = 0.1
    """Resolution of `GroupObservation.recent`."""
    slots_between: bool = False
    """Its slots end in the middle between multiples of `slot_s`, the last one at the look: as live samples lie."""
    poll_events: int = 1
    """Events polled and committed together at most; 1: each is committed when it is finished."""
    initial_replicas: int = 1
    replica_prefix: str = "payment"
    assignor: Assignor = Assignor.STICKY
    planned_rebalance_time_s: float | None = None
    """t_r that policies are told; None: the delivery's own (pause_s under incremental, else rebalance_time_s)."""
    planned_startup_s: float | None = None
    """Start-up that policies are told; None: the true one, 0 where that is sampled."""
    planned_commit_age_s: float | None = None
    """Age of commits that policies are told; None: the true one."""
    planned_overhead_s: float = 0.0
    """What policies are told of an event's latency beside waiting and being served."""
    failures: tuple[Failure, ...] = ()
    """Each kills the ready replica that holds most partitions then."""
    session_s: float = 6.0
    eviction_s: float = 0.1
    seed: int = 1

    @property
    def told_rebalance_time_s(self) -> float:
        """t_r that policies are told, seconds."""
        return _told(self.planned_rebalance_time_s, self.delivery.own_rebalance_time_s)

    @property
    def told_startup_s(self) -> float:
        """Start-up that policies are told, seconds."""
        return _told(self.planned_startup_s, self.startup_s or 0.0)

    @property
    def told_commit_age_s(self) -> float:
        """Age of commits that policies are told, seconds."""
        return _told(self.planned_commit_age_s, self.commit_age_s)

    def __post_init__(self) -> None:
        delivery = self.delivery
        lengths_s = {
            "pause_s": delivery.pause_s,
            "rebalance_time_s": delivery.rebalance_time_s,
            "heartbeat_s": delivery.heartbeat_s,
            "notice_s": delivery.notice_s,
            "startup_s": self.startup_s or 0.0,
            "stop_s": self.stop_s,
            "tick_offset_s": self.tick_offset_s,
            "observation_delay_s": self.observation_delay_s,
            "commit_age_s": self.commit_age_s,
            "commit_interval_s": self.commit_interval_s,
            "planned_rebalance_time_s": self.planned_rebalance_time_s or 0.0,
            "planned_startup_s": self.planned_startup_s or 0.0,
            "planned_commit_age_s": self.planned_commit_age_s or 0.0,
            "planned_overhead_s": self.planned_overhead_s,
            "session_s": self.session_s,
            "eviction_s": self.eviction_s,
        } | {f"failures[{index}].at_s": failure.at_s for index, failure in enumerate(self.failures)}
        wrong = [f"{name} = {value}: must be 0 s or more" for name, value in lengths_s.items() if not 0 <= value < inf]
        for name in ("decision_interval_s", "slot_s"):
            if not 0 < getattr(self, name) < inf:
                wrong.append(f"{name} = {getattr(self, name)}: must be more than 0 s")
        for name in ("poll_events", "initial_replicas"):
            if getattr(self, name) < 1:
                wrong.append(f"{name} = {getattr(self, name)}: must be at least 1")
        if not 0 <= self.observation_loss <= 1:
            wrong.append(f"observation_loss = {self.observation_loss}: must be a share, 0 to 1")
        if wrong:
            raise ValueError("; ".join(wrong))


@dataclass(frozen=True, slots=True)
class Tick:
    """A decision whose moment is known, and what is known of it."""

    at_us: int
    """Since the start of the run."""
    commit_ages_s: Mapping[str, float] = field(default_factory=dict)
    """Replica → age of its commits as they are seen then. Those of others follow from clocks of their own."""


@dataclass(frozen=True, slots=True)
class Change:
    """One decision that was carried out."""

    at_s: float
    action: Action
    replicas: int
    """Planned count from then on."""
    moved: int
    """Partitions that change their owner by it."""


def _told(planned_s: float | None, true_s: float) -> float:
    """Return what policies are told of what is `true_s` in truth."""
    return true_s if planned_s is None else planned_s
