"""Measured figures as they are committed under bench/reference/, each with what is needed to measure it again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from contracts.validation import InvalidSettingsError

ResultT = TypeVar("ResultT", bound=msgspec.Struct)
FOLDER: Final = Path(__file__).parent / "reference"


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where figures were measured, and by which command."""

    command: str
    commit: str
    machine: str
    measured_on: str
    """ISO date."""
    wall_s: int = 0
    """How long the command took, where that is promised; 0: it is not."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[ResultT]):
    """A result and where it was measured; in the file one flat object."""

    result: ResultT
    origin: Origin

    def flat(self) -> dict[str, Any]:
        """Return the fields of the result, and the origin beside them."""
        return {**msgspec.structs.asdict(self.result), "origin": self.origin}


def load(name: str, kind: type[ResultT], folder: Path = FOLDER) -> list[Kept[ResultT]]:
    """Return the committed results in the file of this name; none where nothing was measured yet.

    Raises InvalidSettingsError for a file of something else.
    """
    path = folder / f"{name}.json"
    try:
        rows = msgspec.json.decode(path.read_bytes()) if path.exists() else []
        return [Kept(msgspec.convert(row, kind), msgspec.convert(row["origin"], Origin)) for row in rows]
    except (msgspec.DecodeError, LookupError, TypeError) as wrong:
        raise InvalidSettingsError([f"{path} holds no figures of this command ({wrong}): mend it or move it"]) from None


def keep(
    name: str,
    found: Sequence[ResultT],
    origin: Origin,
    folder: Path,
    question: Callable[[ResultT], Any] | None = None,
) -> None:
    """Write results, which have one origin, into the file of this name.

    question: what a result answers. Those of before stay, unless one of `found` answers the same; none: all go.
    """
    rows = [Kept(one, origin) for one in found]
    if question and found:
        answered = [question(one) for one in found]
        before = [row for row in load(name, type(found[0]), folder) if question(row.result) not in answered]
        rows = sorted([*before, *rows], key=lambda row: question(row.result))
    folder.mkdir(parents=True, exist_ok=True)
    lines = b",\n".join(msgspec.json.encode(row.flat()) for row in rows)  # a line each: what changed is seen
    (folder / f"{name}.json").write_bytes(b"[\n" + lines + b"\n]\n")


class SimulatedSide(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulator says of a live run."""

    in_sla: float
    p999_s: float
    replica_minutes: float
    in_sla_points: float
    """Simulated minus live, percentage points."""
    replica_minutes_share: float
    """Simulated minus live, of the live ones."""


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One live run of a scenario under a policy. Lengths of time in seconds, in_sla a share; null: not known."""

    scenario: str
    policy: str
    seed: int
    events: int
    in_sla: float
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float | None
    scale_ups: int | None
    scale_downs: int | None
    reassignments: int | None
    lost: int | None
    lateness_p99_s: float | None
    valid: bool
    simulated: SimulatedSide | None = None
    """Its own events, with its own times (`tailpack replay`)."""
    forecast: SimulatedSide | None = None
    """The scenario, with the times of the run before it (`tailpack simulate --times`)."""
    load_workers: int = 0
    """Processes that shared the load; 0: one sent it all."""
    settings: tuple[str, ...] = ()
    """Set over the scenario, key=value, sorted."""


class ClusterRow(LiveRow, frozen=True, kw_only=True):
    """A live run whose replicas were pods."""

    moved_partitions: int | None
    start_p50_s: float | None
    """From a replica asked for until it serves: scheduling and the container's start are in it."""
    start_max_s: float | None
    pause_p99_s: float | None
    """Of the rounds in which an event waited for its partition's new owner."""
    pause_max_s: float | None


class DeliveryRow(LiveRow, frozen=True, kw_only=True):
    """A live run under one way to deliver plans, and one heartbeat interval."""

    runtime: str
    heartbeat_s: float


class ServiceRateRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one Payment replica sustains with a standing backlog."""

    service_time_s: float
    events: int
    service_rate: float
    """μ_eff, events/s."""
    share_of_ideal: float
    """μ_eff · service_time_s."""
    cpu_per_event_s: float
    peak_mib: float


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a run under a steady load."""

    rate: int
    """Events/s of the load."""
    topology: str
    name: str
    cores: float
    peak_mib: float


class StartupRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step between the command and its result, seconds since the command."""

    step: str
    at_s: float


class SparkRow(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a made-up run that lies in Parquet: from the start of its process to its end, JVM included."""

    events: int
    wall_s: float
    peak_rss_gib: float
    """Of Python and the JVM together, at the peak."""
    events_per_s: float
    in_sla: float
    late_by_cause: dict[str, int]
    """Of the run: cause → late events."""


class SpeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workload, served."""

    measured: str
    """What served it: engine, pool, or the simulator as a whole under the policy of this name."""
    events: int
    partitions: int
    replicas: int
    wall_s: float
    process_s: float
    """Processor time; the one to compare on a machine that does other things too."""
    events_per_s: float
    """Per second of processor time: all of it uses one core."""
    policy_s: float = 0.0
    """Processor time that the policy of a whole run took, its guards included."""
    peak_mb: float | None = None
    """Of a whole run: the most memory that the process ever held, Python and the compiler included."""


class DecisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """Whole decisions about one steady group, guards included."""

    partitions: int
    replicas: int
    arrivals: str
    """How events come: evenly, or in bursts."""
    ms: dict[str, float]
    """Policy → milliseconds of processor time, the median of several ticks."""


class LoadgenRow(msgspec.Struct, frozen=True, kw_only=True):
    """The load generator on this machine, with an idempotent producer and one broker, or by HTTP to one Order."""

    entry: str
    """kafka or http."""
    workers: int
    """Processes that send; several have a master beside them."""
    rate_per_s: int
    """At which they were punctual, …"""
    within_2ms: float
    """… this share of events, evenly spaced, within 2 ms of the intended time, …"""
    lateness_p99_s: float
    """… and all but 1 % within this."""
    bursts_within_2ms: float
    """The same share where all events of a second are due at once: the last ones wait for those before."""
    max_rate_per_s: int
    """Events/s made, sent and acknowledged while all are overdue: nothing is made ready beforehand."""
    sustained_s: float
    """So long."""
    on_time_per_s: int
    """The highest rate tried that was held, evenly spaced: p99 lateness within 5 % of 0.5 s. 0: none was."""


class PipelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of the pipeline alone, with a standing backlog."""

    stage: str
    instances: int
    partitions: int
    """Of each of its topics."""
    orders: int
    orders_per_s: float
    cores: float
    """Processor time of all instances, as cores …"""
    ms_per_order: float
    """… and for each order."""


class LiveScaleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One size of group: a controller and its members against one broker. Null: it did not come so far."""

    members: int
    partitions: int
    processes: int
    """That the members share."""
    first_plan_s: float | None
    """From the start of the members until all of them served by the first plan."""
    plan_taken_s: float | None
    """From the write of a plan that moves a quarter of the partitions until every member serves by it: the median …"""
    plan_taken_max_s: float | None
    """… and the longest."""
    tick_s: float | None
    """Wall time of a tick at rest, the median."""
    tick_max_s: float | None
    """The longest tick, while plans are carried out or at rest."""
    requests_per_s: float | None
    """That members send at rest, counted at their clients; the controller's own are not in it."""
    broker_cores: float | None
    """Processor time at rest, as cores …"""
    controller_cores: float | None
    """… of the controller …"""
    members_cores: float | None
    """… and of all members."""
    journal_mb_per_day: float | None
    """What the journal grows by at rest at most, uncompressed: twice the median tick's, as whole ones in between are
    together no larger than the others."""
    problem: str = ""
    """What did not happen in time; empty when all did."""
