"""The sections of a scenario file."""

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from autoscaler.policies.settings import Guards, Scaling
from autoscaler.simulator.settings import ObservationSettings, ServiceShape
from contracts.membership import MIN_SERVICE_TIME, EventCost, Membership
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import DAY_S, Rules, Settings, Target, Values, required, setting
from contracts.topics import KeyedTopics
from grouping import Partitioner
from loadgen.schedule import Bursts, Spacing, Split
from loadgen.spec import Topology

NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,40}")


def _usable_name(values: Values) -> str | None:
    good = NAME.fullmatch(values["name"])
    return None if good else "must be small letters, digits and dashes, 41 at most, and begin with no dash"


def _within_partitions(values: Values) -> str | None:
    fits = values["initial_replicas"] <= values["partitions"]
    return None if fits else f"is more than the {values['partitions']} partitions; the rest would own nothing"


def _protocol_fits_runtime(values: Values) -> str | None:
    runtime = values["runtime"]
    means_nothing = runtime and values["rebalance_protocol"] not in (RebalanceProtocol.INCREMENTAL, runtime)
    return f"says nothing about {runtime}, which delivers in its own way" if means_nothing else None


@dataclass(frozen=True, kw_only=True)
class Heading(KeyedTopics):
    """What stands above the sections."""

    name: str
    """First part of the names of the run's folder and topics: up to 41 small letters, digits and dashes. Default: the
    file's name."""
    description: str = ""
    """One sentence on what the scenario tests."""
    topology: Topology = setting(Topology.PAYMENT_ONLY)
    """Stages of the run; the load enters at the first one."""
    duration_s: int = required("s", least=1, most=DAY_S)
    """Length of the load. Default in a file: the whole workload."""
    seed: int = setting(1, least=0, most=2**31 - 1)
    """Seed of the load and of all chance in a simulated run."""
    RULES: ClassVar[Rules] = (("name", _usable_name),)


@dataclass(frozen=True, kw_only=True)
class Load(Bursts):
    """What is sent."""

    workload: str
    """Name of a workload in `loadgen.workloads`."""
    trace: str = setting("")
    """CSV or Parquet file with the events to send instead of a workload, as `--trace`."""
    spacing: Spacing = setting(Spacing.BURST)
    """Distribution of events within a second."""
    split: Split = setting(Split.EVEN)
    """Distribution of events over partitions."""
    burst_phase_s: float | Literal["random"] = setting("random", "s", least=0)
    """Time of the first burst within its period; `random`: chosen by the seed."""
    partitioner: Partitioner = setting(Partitioner.EXPLICIT, formerly="grouping")
    """Partitioner of `payments.requested`; `explicit`: the load chooses."""
    key_skew: float = setting(0.0, least=0, most=10)
    """Exponent of Zipf's law for customers; 0: all customers are equally frequent."""
    faults: tuple[str, ...] = setting(())
    """`burst 120-121 10`: ten times the events of second 120. `hot-key 60-90 0.5`: one customer has half of them."""
    entry: Literal["kafka", "http"] = setting("kafka")
    """Live entry of events: records in Kafka, or POST /orders. Pipeline only."""
    invalid_share: float = setting(0.0, "share", least=0, most=1)
    """Share of invalid orders. Pipeline only."""


@dataclass(frozen=True, kw_only=True)
class Payment(Membership, EventCost):
    """The scaled group."""

    partitions: int = required(least=1, most=10_000)
    """Partitions of `payments.requested`. Default in a file: those of the workload's table, else 5."""
    runtime: str = setting("", known=("", *RUNTIMES))
    """Another runtime that does the work and places partitions itself; plans are then counts only."""
    key_order: bool = setting(False)
    """Require that each customer's events stay in order; partitioners that split keys are then refused."""
    RULES: ClassVar[Rules] = (MIN_SERVICE_TIME, ("rebalance_protocol", _protocol_fits_runtime))


@dataclass(frozen=True, kw_only=True)
class Simulation(ServiceShape, ObservationSettings):
    """What only a simulated run can choose, or must be told; live replicas differ as speeds and slow_… say, too. Where
    it repeats another section's key, it wins there."""

    split: Split | None = setting(None)
    """Distribution over partitions; none: as in [load]."""
    startup_s: float | Literal["gke"] = setting(0.0, "s", least=0)
    """Time from the request of a replica until it can serve; `gke`: sampled as measured on GKE, mostly 10 to 50 s."""
    pause_s: float | None = setting(None, "s", least=0)
    """Pause of a partition that moves incrementally; none: `rebalance_time_s`, which is the stop of the group
    otherwise."""
    failures_s: tuple[float, ...] = setting((), "s", least=0)
    """Times at which the replica with most partitions dies."""
    failures_known: bool = setting(True)
    """Deaths are detected at once; false: after `session_s`."""
    REMOVED: ClassVar[Values] = {"whole_batches": False, "planned_overhead_s": 0.0, "assignor": "sticky"}


WORLDS_ONLY: Final = (
    *("distribution", "shared_limits", "failures_s"),
    *("observation_delay_s", "observation_loss", "service_rate_error"),
)
"""Of [simulation], what live processes cannot be told. The rest says how long live ones take for what they do."""


@dataclass(frozen=True, kw_only=True)
class Stage(EventCost):
    """A group behind the scaled one, which reads what that writes; a list, `[[stages]]`, one behind the other. What is
    not said here is as in the other sections."""

    name: str
    """Small letters, digits and dashes."""
    partitions: int = required(least=1, most=10_000)
    """Partitions of its topic; the hash of the order chooses one."""
    branching: float = setting(1.0, least=0, most=100)
    """Mean number of events for each event of the previous stage. Policies measure it."""
    initial_replicas: int = setting(1, "replicas", least=1)
    """Replicas at the start."""
    share: float | None = setting(None, "share", above=0, below=1)
    """Share of W reserved for this stage; none: equal shares."""
    RULES: ClassVar[Rules] = (("name", _usable_name), MIN_SERVICE_TIME, ("initial_replicas", _within_partitions))


@dataclass(frozen=True, kw_only=True)
class Chain(Settings):
    """How groups one behind the other are scaled."""

    coordinated: bool = setting(True)
    """Each group gets the expected output of the previous one and its remaining latency budget; false: each group is
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
"""Name in the file → record; the nameless one is what stands above the sections."""
OPTIONS: Final = "policy"
"""One more section: options of the policy, which alone knows them."""


STAGES: Final = "stages"
"""And a list of tables: the groups behind the scaled one."""
