"""The sections of a scenario file."""

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from autoscaler.policies.settings import Guards, Scaling
from autoscaler.simulator.settings import Observing, ServiceShape
from contracts.delivery import RUNTIMES, Delivery
from contracts.membership import TAKES_TIME, Membership, Work
from contracts.settings import DAY_S, Rules, Settings, Target, Values, required, setting
from contracts.topics import KeyedTopics
from grouping import Grouping
from loadgen.schedule import Bursts, Spacing, Split
from loadgen.spec import Topology

NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,40}")


def _usable_name(values: Values) -> str | None:
    good = NAME.fullmatch(values["name"])
    return None if good else "must be small letters, digits and dashes, 41 at most, and begin with no dash"


def _within_partitions(values: Values) -> str | None:
    fits = values["initial_replicas"] <= values["partitions"]
    return None if fits else f"is more than the {values['partitions']} partitions; the rest would own nothing"


def _own_delivery(values: Values) -> str | None:
    runtime = values["runtime"]
    means_nothing = runtime and values["delivery"] not in (Delivery.INCREMENTAL, runtime)
    return f"says nothing about {runtime}, which delivers in its own way" if means_nothing else None


@dataclass(frozen=True, kw_only=True)
class Heading(KeyedTopics):
    """Settings above the sections."""

    name: str
    """Begins the names of the run's folder and topics: small letters, digits and dashes, 41 at most. In a file without
    it: the file's name."""
    description: str = ""
    """The question that the scenario tests, in a sentence."""
    topology: Topology = setting(Topology.PAYMENT_ONLY)
    """Where the load enters, and which stages the run has."""
    duration_s: int = required("s", least=1, most=DAY_S)
    """Seconds of the workload that are sent. In a file without it: all of them."""
    seed: int = setting(1, least=0, most=2**31 - 1)
    """Seed of the load and of everything random in a simulation."""
    RULES: ClassVar[Rules] = (("name", _usable_name),)


@dataclass(frozen=True, kw_only=True)
class Load(Bursts):
    """The load."""

    workload: str
    """A name in loadgen.workloads."""
    trace: str = setting("")
    """CSV or Parquet file whose events are sent in place of the workload's; as `--trace`."""
    spacing: Spacing = setting(Spacing.BURST)
    """How the events of a second lie in it."""
    split: Split = setting(Split.EVEN)
    """How they are shared out among partitions."""
    burst_phase_s: float | Literal["random"] = setting("random", "s", least=0)
    """When the first burst comes, within its period; `random`: drawn by the seed."""
    grouping: Grouping = setting(Grouping.EXPLICIT)
    """Partitioner: how the payment partition of an event is chosen."""
    key_skew: float = setting(0.0, least=0, most=10)
    """Skew of the customers: exponent of Zipf's law; 0: all alike."""
    faults: tuple[str, ...] = setting(())
    """`burst 120-121 10`: ten times the events of second 120; `hot-key 60-90 0.5`: one customer brings half of them."""
    entry: Literal["kafka", "http"] = setting("kafka")
    """How events enter live: as records, or by POST /orders of the Order service. Pipeline only."""
    invalid_share: float = setting(0.0, "share", least=0, most=1)
    """Share of orders that Order must refuse. Pipeline only."""


@dataclass(frozen=True, kw_only=True)
class Payment(Membership, Work):
    """The scaled group."""

    partitions: int = required(least=1, most=10_000)
    """Partitions of payments.requested. In a file without it: those of the workload's table, else 5."""
    runtime: str = setting("", known=("", *RUNTIMES))
    """Another runtime does the work instead of ours, and places the partitions itself: plans are counts only."""
    key_order: bool = setting(False)
    """Whether the events of a customer must come in their order; refuses groupings that split keys."""
    RULES: ClassVar[Rules] = (TAKES_TIME, ("delivery", _own_delivery))


@dataclass(frozen=True, kw_only=True)
class Simulation(ServiceShape, Observing):
    """Settings of simulated runs; speeds and slow_… are valid for live runs, too. A key that another section has, too,
    takes precedence here."""

    split: Split | None = setting(None)
    """None: as in [load]."""
    startup_s: float | Literal["gke"] = setting(0.0, "s", least=0)
    """From the request of a replica until it could serve; "gke": sampled as measured there, mostly 10 to 50 s."""
    pause_s: float | None = setting(None, "s", least=0)
    """Pause of a partition that moves under the incremental protocol; None: autoscaler.rebalance_time_s, for which the
    other protocols stop the whole group."""
    failures_s: tuple[float, ...] = setting((), "s", least=0)
    """When the replica with most partitions dies."""
    failures_known: bool = setting(True)
    """The scaler sees it at once; else the session must expire."""


WORLDS_ONLY: Final = (
    *("distribution", "shared_limits", "failures_s"),
    *("observation_delay_s", "observation_loss", "service_rate_error"),
)
"""Settings of [simulation] that live processes do not have. The others are lengths of time that live processes take."""


@dataclass(frozen=True, kw_only=True)
class Stage(Work):
    """A group behind the scaled one, which reads the output of that; a list, `[[stages]]`, one behind the other. All
    other settings are those of the other sections."""

    name: str
    """Small letters, digits and dashes."""
    partitions: int = required(least=1, most=10_000)
    """Partitions of its topic; the partition of an event follows from a hash of its order."""
    branching: float = setting(1.0, least=0, most=100)
    """Events that each event of the stage before causes on average. Policies measure it."""
    initial_replicas: int = setting(1, "replicas", least=1)
    """Replicas at the start."""
    share: float | None = setting(None, "share", above=0, below=1)
    """Share of W that the stage has in any case; None: all stages have the same. The scaled group has the rest."""
    RULES: ClassVar[Rules] = (
        ("name", _usable_name),
        TAKES_TIME,
        ("initial_replicas", _within_partitions),
    )


@dataclass(frozen=True, kw_only=True)
class Chain(Settings):
    """How groups one behind the other are scaled."""

    coordinated: bool = setting(True)
    """Each group gets the forecast of the group before it, and what that leaves of W and of the late events; off, each
    observes itself only."""


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
