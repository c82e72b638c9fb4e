"""The sections of a scenario file, field by field."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from loadgen.schedule import Spacing, Split
from loadgen.spec import Grouping, Topology

Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,40}$")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
OptionalSeconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


RUNTIMES: Final = ("cooperative-sticky", "kip848", "share", "faust")
"""Comparators that can do the work of Payment, by the names that every part of the project uses."""


class Delivery(StrEnum):
    """How our own replicas carry out a plan."""

    INCREMENTAL = "incremental"
    """Only the partitions that move stop being served."""
    EAGER = "eager"
    """Every rebalance stops every replica."""


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
}
"""Name in the file → record; the nameless one is what stands above the sections."""
