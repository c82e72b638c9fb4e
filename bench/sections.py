"""The sections of a scenario file."""

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from autoscaler.policies.settings import Guards, Scaling
from autoscaler.simulator.settings import ObservationSettings, ServiceShape
from contracts.membership import MIN_SERVICE_TIME, EventCost, Membership
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import DAY_S, Rules, Settings, Target, must, required, setting
from contracts.topics import KeyedTopics
from loadgen.schedule import Bursts, Spacing, Split
from loadgen.spec import Topology
from partitioners import Partitioner

LED_PROTOCOLS: Final = (RebalanceProtocol.LED_EAGER, RebalanceProtocol.LED_COOPERATIVE)
"""Protocols of other clients that follow plans, because the autoscaler leads their group."""
NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,40}")
VALID_NAME: Final = must(
    "name",
    lambda of: NAME.fullmatch(of["name"]),
    "must be at most 41 lower-case letters, digits and dashes, and not begin with a dash",
)
ENOUGH_PARTITIONS: Final = must(
    "initial_replicas",
    lambda of: of["initial_replicas"] <= of["partitions"],
    "is more than the {partitions} partitions; the others would own none",
)
PROTOCOL_FITS_RUNTIME: Final = must(
    "rebalance_protocol",
    lambda of: not of["runtime"] or of["rebalance_protocol"] in (RebalanceProtocol.INCREMENTAL, of["runtime"]),
    "has no effect with runtime = {runtime!r}, which has its own rebalance protocol",
)


@dataclass(frozen=True, kw_only=True)
class Heading(KeyedTopics):
    """Top-level keys of a scenario."""

    name: str
    """First part of the names of the run's folder and topics: up to 41 lower-case letters, digits and dashes. Default:
    the file's name."""
    description: str = ""
    """Purpose of the scenario, in one sentence."""
    topology: Topology = setting(Topology.PAYMENT_ONLY)
    """Stages of the run; the load enters at the first one."""
    duration_s: int = required("s", least=1, most=DAY_S)
    """Duration of the load. Default in a file: that of the workload."""
    seed: int = setting(1, least=0, most=2**31 - 1)
    """Seed of the load and of everything random in a simulated run."""
    RULES: ClassVar[Rules] = (VALID_NAME,)


@dataclass(frozen=True, kw_only=True)
class Load(Bursts):
    """The load that is sent."""

    workload: str
    """Name of a workload, or a curve that repeats: `80 for 200, to 330 in 50` is 80 events/s for 200 s, then 50 s up
    to 330."""
    trace: str = setting("")
    """CSV or Parquet file with events that replace the workload, as in `--trace`."""
    spacing: Spacing = setting(Spacing.BURST)
    """Distribution of events within a second."""
    split: Split = setting(Split.EVEN)
    """Distribution of events over partitions."""
    burst_phase_s: float | Literal["random"] = setting("random", "s", least=0)
    """Time of the first burst within its period; `random`: chosen by the seed."""
    partitioner: Partitioner = setting(Partitioner.EXPLICIT)
    """Partitioner of `payments.requested`; `explicit`: the load chooses."""
    key_skew: float = setting(0.0, least=0, most=10)
    """Exponent of Zipf's law for customers; 0: all customers are equally frequent."""
    faults: tuple[str, ...] = setting(())
    """`burst 120-121 10`: ten times the events in second 120. `hot-key 60-90 0.5`: half have one customer."""


@dataclass(frozen=True, kw_only=True)
class Payment(Membership, EventCost):
    """The scaled group."""

    partitions: int = required(least=1, most=10_000)
    """Partitions of `payments.requested`. Default in a file: those of the workload's table, else 5."""
    runtime: str = setting("", known=("", *RUNTIMES, *LED_PROTOCOLS))
    """Protocol of another client that serves the events. All but the led protocols assign partitions themselves; plans
    then only set replica counts. Live, `range` and `led-…` are a plain Java consumer."""
    key_order: bool = setting(False)
    """Require order per customer; partitioners that split keys are then rejected."""
    RULES: ClassVar[Rules] = (MIN_SERVICE_TIME, PROTOCOL_FITS_RUNTIME)


@dataclass(frozen=True, kw_only=True)
class Simulation(ServiceShape, ObservationSettings):
    """Settings of simulated runs. Live runs use `speeds` and `slow_…` too. In a simulation, a key here overrides the
    same key of another section."""

    split: Split | None = setting(None)
    """Distribution of events over partitions; none: as in [load]."""
    startup_s: float | Literal["gke"] = setting(0.0, "s", least=0)
    """Time from the request for a replica until it serves. `gke`: drawn from times measured on GKE, mostly 10–50 s."""
    pause_s: float | None = setting(None, "s", least=0)
    """Pause of a partition that moves incrementally; none: `rebalance_time_s`, for which other protocols pause the
    whole group."""
    failures_s: tuple[float, ...] = setting((), "s", least=0)
    """Times at which the replica with the most partitions dies."""
    failures_known: bool = setting(True)
    """Whether deaths are detected at once; false: after `session_s`."""


SIMULATION_ONLY: Final = (
    *("distribution", "shared_limits", "failures_s"),
    *("observation_delay_s", "observation_loss", "service_rate_error"),
)
"""Keys of [simulation] that live runs cannot apply. The other keys are durations that live processes have anyway."""


@dataclass(frozen=True, kw_only=True)
class Stage(EventCost):
    """A group that reads the output of the scaled group, or of the stage before it. `[[stages]]` is a list. Other
    settings are taken from the other sections."""

    name: str
    """Name of the stage: lower-case letters, digits and dashes."""
    partitions: int = required(least=1, most=10_000)
    """Partitions of its topic, to which orders are assigned by hash."""
    branching: float = setting(1.0, least=0, most=100)
    """Mean number of events per event of the previous stage. Policies measure it."""
    initial_replicas: int = setting(1, "replicas", least=1)
    """Replicas at the start."""
    share: float | None = setting(None, "share", above=0, below=1)
    """Share of the latency target (W) reserved for this stage; none: equal shares."""
    RULES: ClassVar[Rules] = (VALID_NAME, MIN_SERVICE_TIME, ENOUGH_PARTITIONS)


@dataclass(frozen=True, kw_only=True)
class Chain(Settings):
    """Scaling of a chain of groups."""

    coordinated: bool = setting(True)
    """Each group uses the predicted output of the previous one and its remaining latency budget; false: each group is
    scaled alone."""


SECTIONS: Final[dict[str, type[Settings]]] = {
    "": Heading,
    "load": Load,
    "payment": Payment,
    "target": Target,
    "autoscaler": Scaling,
    "guards": Guards,
    "simulation": Simulation,
    "chain": Chain,
}
"""Section in the file → its record; the empty name stands for the top-level keys."""
OPTIONS: Final = "policy"
"""Section with the options of the policy, which validates them."""
STAGES: Final = "stages"
"""Key of the list of tables with the groups after the scaled group."""
