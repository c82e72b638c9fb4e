"""The description of a run, run.json. It is written at the start, completed at the end, and read by the report."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from contracts.validation import DECODE_ERRORS
from partitioners import Partitioner
from report import ReportError, replace_file

if TYPE_CHECKING:
    from report.table import Rows, Table

RUN_FILE: Final = "run.json"
EVENTS: Final = "events.parquet"
JOURNAL: Final = "journal.parquet"
MIN_INTENDED_US: Final = 946_684_800_000_000
"""Beginning of the year 2000, µs since 1970. Earlier times are errors of a unit or a clock."""
MAX_DURATION_DAYS: Final = 40
"""Maximum duration of a run in a report, because series have one entry per second."""
CLAIRVOYANT_POLICIES: Final = ("clairvoyant",)
"""Policies that use future events. They serve as references and are left out of Pareto fronts."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a scenario. Times are µs since 1970, durations are seconds."""

    run: str
    """Name of the run, and namespace of its topics."""
    scenario: dict[str, Any]
    """Settings of the scenario, overrides included."""
    policy: str
    seed: int
    topology: Literal["pipeline", "payment-only"]
    world: Literal["live", "simulated", "unknown"] = "live"
    """unknown: external events."""
    bootstrap_servers: str
    client_properties: str
    payment_partitions: int
    latency_target_s: float
    percentile: float
    duration_s: float
    started_us: int | None = None
    """Scheduled time of second 0 of the workload."""
    drained_us: int | None = None
    """Time at which the last event was completed, or at which waiting for it ended."""
    interrupted: bool = False
    interventions: tuple[str, ...] = ()
    """Actions of an operator on the live page, each with the time of the run."""
    events_scheduled: int = 0
    commit: str = ""
    command: str = ""
    versions: dict[str, str] = {}
    machine: str = ""
    peak_memory_mib: float | None = None
    """Peak of the summed PSS of all processes of the run."""
    cores_full_s: float | None = None
    """Seconds in which all cores of the machine were busy, between the first and the last event."""

    def section(self, name: str) -> dict[str, Any]:
        """Return a section of the scenario; empty if it has none."""
        found: Any = self.scenario.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def keeps_key_order(self) -> bool:
        """Whether the partitioner of the run keeps all events of a customer on one partition."""
        return self.section("load").get("partitioner") in [kind.value for kind in Partitioner if kind.keeps_key_order]

    def save(self, folder: Path) -> None:
        """Write folder/run.json atomically."""
        replace_file(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(self), indent=2))

    @classmethod
    def load(cls, folder: Path) -> "RunInfo":
        """Read folder/run.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / RUN_FILE).read_bytes(), type=cls)


def load_run(folder: Path) -> RunInfo:
    """Read folder/run.json. Raises ReportError if it is missing or broken, or the load never started."""
    try:
        run = RunInfo.load(folder)
    except OSError as missing:
        raise ReportError(f"{folder / RUN_FILE}: {missing.strerror}; pass a run folder, such as out/NAME") from missing
    except DECODE_ERRORS as broken:
        raise ReportError(f"{folder / RUN_FILE}: not a valid run description ({broken}); repeat the run") from broken
    if run.started_us is None:
        raise ReportError(f"{folder / RUN_FILE}: started_us is missing: the load never started; repeat the run")
    return run


def run_of_files(events: str, target_s: float, share: float, command: str) -> RunInfo:
    """Return a description for events without run.json. Raises ReportError for an invalid target or share.

    events: path or URI.
    """
    if not (0 < target_s < math.inf and 0 < share <= 1):
        rule = "the target must be positive, the share above 0 and at most 1"
        raise ReportError(f"invalid SLO: share {share:g} within {target_s:g} s; {rule}")
    return RunInfo(
        run=events.rstrip("/").rpartition("/")[2] or events, scenario={"name": f"events {events}"},
        policy="unknown", seed=0, topology="payment-only", world="unknown",
        bootstrap_servers="", client_properties="", payment_partitions=0,
        latency_target_s=target_s, percentile=share, duration_s=0.0, command=command,
    )  # fmt: skip


def with_time_range(run: RunInfo, rows: "Rows", *, now_us: int) -> RunInfo:
    """Return `run` with the start (a whole second) and the duration of its events. Events after now_us are ignored.

    Raises ReportError if no event has a plausible time, or the events span more than MAX_DURATION_DAYS.
    """
    ends = [span for span in rows.pieces(partial(_ends, now_us=now_us)) if span]
    if not ends:
        raise ReportError("no intended_us is between 2000 and now; times must be microseconds since 1970, UTC")
    started_us = min(first for first, _ in ends) // 1_000_000 * 1_000_000
    duration_s = (max(last for _, last in ends) - started_us) // 1_000_000 + 1
    if duration_s > MAX_DURATION_DAYS * 86_400:
        raise ReportError(f"its events span {duration_s / 86_400:,.0f} days; the maximum is {MAX_DURATION_DAYS}")
    return msgspec.structs.replace(run, started_us=started_us, duration_s=float(duration_s))


def _ends(events: "Table", now_us: int) -> tuple[int, int] | None:
    intended_us = events["intended_us"]
    plausible = intended_us[(intended_us >= MIN_INTENDED_US) & (intended_us <= now_us)]
    return (int(plausible.min()), int(plausible.max())) if len(plausible) else None


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
