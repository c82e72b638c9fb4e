"""What one run was: written as run.json when it starts, completed when it ends, read by the report."""

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from grouping import Grouping
from report import replace_file

RUN_FILE: Final = "run.json"
EVENTS: Final = "events.parquet"
JOURNAL: Final = "journal.parquet"
FORESEEING: Final = ("clairvoyant",)
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
        """Return a section of the scenario; empty where the run has none."""
        return found if isinstance(found := self.scenario.get(name), dict) else {}

    @property
    def keeps_key_order(self) -> bool:
        """Whether all events of a customer went to one partition, by the run's grouping."""
        return self.section("load").get("grouping") in [one.value for one in Grouping if one.keeps_key_order]

    def save(self, folder: Path) -> None:
        """Write folder/run.json; a reader never sees half of it."""
        replace_file(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(self), indent=2))

    @classmethod
    def load(cls, folder: Path) -> "RunInfo":
        """Read folder/run.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / RUN_FILE).read_bytes(), type=cls)
