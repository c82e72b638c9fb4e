"""What one run was: written as run.json when it starts, completed when it ends, read by the report."""

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from grouping import Partitioner
from report import ReportError, replace_file

if TYPE_CHECKING:
    from report.table import Rows, Table

RUN_FILE: Final = "run.json"
EVENTS: Final = "events.parquet"
JOURNAL: Final = "journal.parquet"
EARLIEST_US: Final = 946_684_800_000_000
"""The year 2000: what was intended before has another unit, or another clock."""
LONGEST_DAYS: Final = 40
"""A series has an entry for each second."""
FORMER_NAMES: Final = {"delivery": "rebalance_protocol", "grouping": "partitioner"}
CLAIRVOYANT_POLICIES: Final = ("clairvoyant",)
"""Policies that know the events beforehand: a yardstick for the others, and in nobody's way on the front."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a scenario. Times are epoch microseconds, lengths seconds."""

    run: str
    """Name of the run and namespace of its topics."""
    scenario: dict[str, Any]
    """The scenario as it was run, overrides included."""
    policy: str
    seed: int
    topology: Literal["pipeline", "payment-only"]
    world: Literal["live", "simulated", "unknown"] = "live"
    """unknown: somebody's own events."""
    bootstrap_servers: str
    client_properties: str
    payment_partitions: int
    latency_target_s: float
    percentile: float
    duration_s: float
    started_us: int | None = None
    """Intended time of second 0 of the workload."""
    drained_us: int | None = None
    """When the last event was seen finished, or the wait for it given up."""
    interrupted: bool = False
    events_scheduled: int = 0
    commit: str = ""
    command: str = ""
    versions: dict[str, str] = {}
    machine: str = ""
    phases_s: dict[str, float] = {}
    """Step → seconds after the command when it was reached."""
    peak_memory_mib: float | None = None
    """PSS of every process of the run, summed, at its peak."""
    cores_full_s: float | None = None
    """How long, from the first event to the last, all cores of the machine that ran it were busy."""

    def section(self, name: str) -> dict[str, Any]:
        """Return a section of the scenario; empty where the run has none. Former names of settings are replaced."""
        found: Any = self.scenario.get(name)
        return {FORMER_NAMES.get(key) or key: value for key, value in found.items()} if isinstance(found, dict) else {}

    @property
    def keeps_key_order(self) -> bool:
        """Whether all events of a customer went to one partition, by the run's partitioner."""
        return self.section("load").get("partitioner") in [one.value for one in Partitioner if one.keeps_key_order]

    def save(self, folder: Path) -> None:
        """Write folder/run.json; a reader never sees half of it."""
        replace_file(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(self), indent=2))

    @classmethod
    def load(cls, folder: Path) -> "RunInfo":
        """Read folder/run.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / RUN_FILE).read_bytes(), type=cls)


def load_run(folder: Path) -> RunInfo:
    """Read folder/run.json. Raises ReportError when it is missing or not whole, or the load never began."""
    try:
        run = RunInfo.load(folder)
    except OSError as missing:
        said = f"{missing.strerror}; name the folder of a run, as `out/NAME`"
        raise ReportError(f"{folder / RUN_FILE}: {said}") from missing
    except msgspec.DecodeError as broken:
        raise ReportError(f"{folder / RUN_FILE}: not a run's description ({broken})") from broken
    if run.started_us is None:
        raise ReportError(f"{folder / RUN_FILE}: started_us is missing; the load never began, so there is no report")
    return run


def unknown_run(name: str, source: str, target_s: float, share: float, command: str) -> RunInfo:
    """Return the description of a run without one. Raises ReportError for a target or share that is none."""
    if not (0 < target_s < math.inf and 0 < share <= 1):
        what = "a latency target is more than 0 seconds, a percentile a share of 1, as 0.999"
        raise ReportError(f"{share:g} within {target_s:g} s was never promised: {what}")
    return RunInfo(
        run=name, scenario={"name": source}, policy="unknown", seed=0, topology="payment-only", world="unknown",
        bootstrap_servers="", client_properties="", payment_partitions=0,
        latency_target_s=target_s, percentile=share, duration_s=0.0, command=command,
    )  # fmt: skip


def bounded(run: RunInfo, rows: "Rows", *, now_us: int) -> RunInfo:
    """Give `run` the start (whole second) and the duration that its events have; those of the future aside.

    Raises ReportError when no event has a time that can be, or they lie too far apart.
    """
    ends = [one for one in rows.pieces(partial(_ends, now_us=now_us)) if one]
    if not ends:
        raise ReportError("no event was intended between 2000 and now; are its times microseconds since 1970, UTC?")
    started_us = min(first for first, _ in ends) // 1_000_000 * 1_000_000
    duration_s = (max(last for _, last in ends) - started_us) // 1_000_000 + 1
    if duration_s > LONGEST_DAYS * 86_400:
        most = f"a report is of {LONGEST_DAYS} at most"
        raise ReportError(f"its events lie {duration_s / 86_400:,.0f} days apart; {most}")
    return msgspec.structs.replace(run, started_us=started_us, duration_s=float(duration_s))


def _ends(events: "Table", now_us: int) -> tuple[int, int] | None:
    intended_us = events["intended_us"]
    can_be = intended_us[(intended_us >= EARLIEST_US) & (intended_us <= now_us)]
    return (int(can_be.min()), int(can_be.max())) if len(can_be) else None
