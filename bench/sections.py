"""The sections of a scenario file, field by field."""

from typing import Annotated, Final, Literal

import msgspec

from autoscaler.simulator.settings import Assignor, Distribution
from contracts.delivery import Delivery
from loadgen.schedule import Spacing, Split
from loadgen.spec import Grouping, Topology

Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,40}$")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
OptionalSeconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent."""

    workload: str
    spacing: Spacing
    split: Split
    grouping: Grouping = Grouping.EXPLICIT
    invalid_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """Share of orders that Order must refuse. Pipeline only."""


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """The scaled group."""

    partitions: Count
    service_time_s: Seconds = 0.005
    """Time to serve one event; μ = 1/service_time_s."""
    heartbeat_s: Seconds = 0.5
    """How often a member reports to the group. CLOSER 2024 compares 0.5 and 3."""
    session_s: Annotated[float, msgspec.Meta(ge=1, le=1800)] = 6.0
    """How long a silent member counts as alive. 1 s is the least that our broker accepts."""
    commit_interval_s: Seconds = 0.1
    drain_s: OptionalSeconds = 8.0
    """What a replica is given after SIGTERM until others have taken its partitions."""
    delivery: Delivery = Delivery.INCREMENTAL
    """How plans are carried out. A runtime's name means that runtime."""
    runtime: str = ""
    """One of RUNTIMES does the work instead of ours, and places the partitions itself: plans are counts only."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The promise: `percentile` of events within `latency_target_s` (W)."""

    latency_target_s: Seconds = 0.5
    percentile: Share = 0.999


class Autoscaler(msgspec.Struct, frozen=True, kw_only=True):
    """Who decides, how often and within which limits."""

    policy: str
    decision_interval_s: Seconds = 1.0
    tick_offset_s: OptionalSeconds = 0.1
    """Ticks fall this long after whole seconds, where bursts begin."""
    min_replicas: Count = 1
    max_replicas: CountOrNone = 0
    """0: as many as there are partitions."""
    initial_replicas: Count = 1
    rebalance_time_s: OptionalSeconds = 0.05
    """t_r that policies plan for until it is learned. CLOSER 2024 measured 50 ms at the 99th percentile."""
    learn_rebalance_time: bool = True
    """Policies plan for the t_r that this very group shows. Off where a published experiment is repeated."""
    absence_grace_s: OptionalSeconds = 0.0
    """For so long the partitions of a replica that died wait for its return."""
    f_up: Share = 0.9
    f_down: Share = 0.4
    cool_down_up_s: OptionalSeconds = 0.0
    """After any scaling no replica is added for so long. The experiments of CLOSER 2024 ran with 10."""
    cool_down_down_s: OptionalSeconds = 0.0
    """After any scaling no replica is removed for so long."""


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What only a simulated run can choose, or must be told. Where it repeats another section's key, it wins there."""

    split: Split | None = None
    """None: as in [load]."""
    startup_s: OptionalSeconds | Literal["gke"] = 0.0
    """From the request of a replica until it could serve; "gke": sampled as measured there, mostly 10 to 50 s."""
    pause_s: OptionalSeconds | None = None
    """Of a partition that moves under incremental delivery; None: autoscaler.rebalance_time_s, which is the stop of
    the group under the others."""
    observation_delay_s: OptionalSeconds = 0.0
    """Offsets are seen as they were so long ago."""
    observation_loss: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    """Share of ticks at which nothing can be observed."""
    commit_age_s: OptionalSeconds = 0.0
    """Commits are seen as they were so long before the offsets beside them: half of the interval at which replicas
    commit, on average. Policies are told."""
    planned_overhead_s: OptionalSeconds = 0.0
    """What policies are told of an event's latency beside waiting and being served; it costs no event anything."""
    poll_events: Count = 1
    """Events that are polled and committed together at most."""
    distribution: Distribution = Distribution.DETERMINISTIC
    """Of the time to serve an event."""
    overhead_s: OptionalSeconds = 0.0
    """Added to each event's time; the replicas of CLOSER 2024 had 0.0007."""
    pareto_shape: Annotated[float, msgspec.Meta(gt=2)] = 2.5
    speeds: Annotated[tuple[Annotated[float, msgspec.Meta(gt=0)], ...], msgspec.Meta(min_length=1)] = (1.0,)
    """Of replicas number 0, 1, …, and again from the first."""
    slow_from_s: OptionalSeconds = 0.0
    slow_until_s: OptionalSeconds = 0.0
    slow_factor: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """How many times as long serving takes in [slow_from_s, slow_until_s)."""
    assignor: Assignor = Assignor.STICKY
    """Who gets what under a policy that states a count only."""
    whole_batches: bool = False
    """Share: whole producer batches are acquired, instead of single events."""
    failures_s: tuple[OptionalSeconds, ...] = ()
    """When the replica with most partitions dies."""
    failures_known: bool = True
    """The scaler sees it at once; else the session must expire."""


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """What stands above the sections."""

    name: Name
    """Begins the names of the run's folder and topics."""
    description: str
    topology: Topology
    duration_s: Count
    """Seconds of the workload that are sent."""
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 1


SECTIONS: Final[dict[str, type[msgspec.Struct]]] = {
    "": Heading,
    "load": Load,
    "payment": Payment,
    "target": Target,
    "autoscaler": Autoscaler,
    "simulation": Simulation,
}
"""Name in the file → record; the nameless one is what stands above the sections."""
OPTIONS: Final = "policy"
"""One more section: options of the policy, which alone knows them."""
