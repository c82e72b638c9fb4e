"""Measured figures as they are committed under bench/reference/, each with what is needed to measure it again.

And tables of them in Markdown, with the commands that made their figures below.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from bench.experiments.compare import PolicyFigures
from bench.experiments.sweeps import SweepFigures
from bench.handover.outcomes import BounceResult, FailoverResult, GrowthResult, HandoverResult, ScaleResult
from bench.simulator_speed import SpeedRow

RowT = TypeVar("RowT", bound=msgspec.Struct)
FOLDER: Final = Path(__file__).parent / "reference"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where figures were measured, and by which command."""

    command: str
    commit: str
    machine: str
    measured_on: str
    """ISO date."""


class SimulatedSide(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a live run through the simulator (`tailpack replay`)."""

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
    scale_ups: int
    scale_downs: int
    reassignments: int
    lost: int
    lateness_p99_s: float | None
    valid: bool
    simulated: SimulatedSide | None = None
    origin: Origin


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
    origin: Origin


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a run under a steady load."""

    rate: int
    """Events/s of the load."""
    topology: str
    name: str
    cores: float
    peak_mib: float
    origin: Origin


class StartupRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step between the command and its result, seconds since the command."""

    step: str
    at_s: float
    origin: Origin


class KafkaReportRow(msgspec.Struct, frozen=True, kw_only=True):
    """The report job on made-up runs read from Kafka."""

    events: int
    wall_s: float
    events_per_s: float
    peak_mib: float
    origin: Origin


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
    origin: Origin


class HandoverRow(HandoverResult, frozen=True, kw_only=True):
    """Handovers of one runtime."""

    origin: Origin


class FailoverRow(FailoverResult, frozen=True, kw_only=True):
    """Replicas that died or were stopped."""

    origin: Origin


class ScaleRow(ScaleResult, frozen=True, kw_only=True):
    """Plans that move a lot in a large group."""

    origin: Origin


class GrowthRow(GrowthResult, frozen=True, kw_only=True):
    """A topic that grew."""

    origin: Origin


class BounceRow(BounceResult, frozen=True, kw_only=True):
    """Replicas replaced one by one."""

    origin: Origin


class ComparisonRow(PolicyFigures, frozen=True, kw_only=True):
    """A policy in a simulated scenario, beside others."""

    origin: Origin


class TargetRow(PolicyFigures, frozen=True, kw_only=True):
    """A policy in a world that has a goal."""

    origin: Origin


class SimulatorRow(SpeedRow, frozen=True, kw_only=True):
    """How fast the simulator serves a workload."""

    origin: Origin


class SweepRow(SweepFigures, frozen=True, kw_only=True):
    """A policy at one point of a sweep."""

    origin: Origin


FILES: Final[dict[str, str]] = {
    "LiveRow": "live.json",
    "DeliveryRow": "delivery.json",
    "ServiceRateRow": "service-rate.json",
    "ProcessRow": "processes.json",
    "StartupRow": "startup.json",
    "SparkRow": "spark.json",
    "KafkaReportRow": "spark-kafka.json",
    "HandoverRow": "handover.json",
    "FailoverRow": "handover-failover.json",
    "ScaleRow": "handover-scale.json",
    "GrowthRow": "handover-growth.json",
    "BounceRow": "handover-bounce.json",
    "ComparisonRow": "comparison.json",
    "TargetRow": "targets.json",
    "PaperRow": "paper.json",
    "SimulatorRow": "simulator.json",
    "SweepRow": "sweeps.json",
    "PackingRow": "packing.json",
    "PackingSpeedFigures": "packing-speed.json",
}
"""By the name of a row's type."""


def load(row: type[RowT], folder: Path = FOLDER) -> list[RowT]:
    """Return the committed rows of this kind; none where nothing was measured yet."""
    path = folder / FILES[row.__name__]
    return msgspec.json.decode(path.read_bytes(), type=list[row]) if path.exists() else []  # type: ignore[valid-type]


def save(rows: Sequence[RowT], row: type[RowT], folder: Path = FOLDER) -> None:
    """Write the rows of one kind in place of those before."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILES[row.__name__]).write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")


LISTED: Final = 3
"""Commands that are named one by one; of more, which differ in an option each, the first stands for all."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]], origins: Iterable[Origin]) -> str:
    """Return a table; under it, once each, where its figures come from."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *_sources(origins)]) + "\n"


def sources(origins: Iterable[Origin]) -> str:
    """Return one line for each command that made the figures."""
    return "".join(
        sorted({f"`{one.command}`, commit {one.commit}, {one.machine}, {one.measured_on}  \n" for one in origins})
    )


def known(value: float | None, times: float, how: str) -> str:
    """Return the value in another unit, – where there is none."""
    return "–" if value is None else format(times * value, how)


def _sources(origins: Iterable[Origin]) -> list[str]:
    sources = sorted({(one.command, one.commit, one.machine, one.measured_on) for one in origins})
    if len(sources) <= LISTED:
        return [f"`{command}`, commit {commit}, {machine}, {day}  " for command, commit, machine, day in sources]
    commits, machines, days = ("; ".join(sorted({one[i] for one in sources})) for i in (1, 2, 3))
    first = sources[0][0]
    return [
        f"`{first}` and {len(sources) - 1} commands like it, commits {commits}, {machines}, {days}; "
        "each row of bench/reference names its own  "
    ]
