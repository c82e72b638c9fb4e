"""What a finished live run left in its folder, as arrays: its events, its journal, and its report."""

from dataclasses import dataclass
from math import lcm
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from contracts.journal import JournalEntry, PlanWritten, TickRecord, entries
from contracts.validation import InvalidSettingsError
from loadgen.schedule import SECOND_US
from report.result import RESULT_FILE, Result
from report.run_info import EVENTS, JOURNAL, RUN_FILE, RunInfo, stored_columns

Times = NDArray[np.int64]
COMMIT_INTERVAL_S: Final = 0.1
"""Between commits, where a run does not say."""
COLUMNS: Final = ("intended_us", "placed_us", "accepted_us", "received_us", "done_us", "partition", "offset", "replica")


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Every event that was finished, in the order of their offsets, partition by partition. µs since second 0."""

    intended_us: Times
    handed_us: Times
    """When it was given to the broker for Payment."""
    received_us: Times
    """When a replica had it: our own have it waiting then, the comparators begin to serve it."""
    done_us: Times
    partition: NDArray[np.int32]
    replica: NDArray[np.int64]
    """A number for each name."""

    def __len__(self) -> int:
        return len(self.done_us)

    @property
    def latency_us(self) -> Times:
        """From the intended time."""
        return self.done_us - self.intended_us


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A finished run."""

    info: RunInfo
    result: Result
    served: Served
    journal: tuple[JournalEntry, ...]
    """In order of time; µs since the epoch."""

    @property
    def started_us(self) -> int:
        """Epoch µs of second 0."""
        return self.result.provenance.started_us

    @property
    def ended_us(self) -> int:
        """Epoch µs at which the workload ended."""
        return self.started_us + round(self.info.duration_s * 1e6)

    @property
    def interval_us(self) -> int:
        """Decision interval, µs."""
        return round(float(self.told("autoscaler", "decision_interval_s", 1.0)) * 1e6)

    @property
    def commit_interval_us(self) -> int:
        """For how long replicas were told to wait between commits, µs."""
        return round(float(self.told("payment", "commit_interval_s", COMMIT_INTERVAL_S)) * 1e6)

    def told(self, section: str, key: str, default: Any) -> Any:
        """Return what the run's scenario said."""
        return self.info.scenario.get(section, {}).get(key, default)

    @property
    def all_ticks(self) -> list[TickRecord]:
        """Those that saw the group, until the workload ended."""
        ticks = (entry for entry in self.journal if isinstance(entry, TickRecord) and entry.partitions)
        return [tick for tick in ticks if tick.at_us < self.ended_us]

    @property
    def ticks(self) -> list[TickRecord]:
        """Those during the workload that saw the group."""
        return [tick for tick in self.all_ticks if self.started_us <= tick.at_us]

    @property
    def first_tick_us(self) -> int:
        """Epoch µs of the first tick that saw the group: mostly before second 0; second 0 where there is none."""
        return min((tick.at_us for tick in self.all_ticks), default=self.started_us)

    @property
    def lead_us(self) -> int:
        """How long before second 0 the autoscaler began to decide, µs: whole seconds and whole decision intervals."""
        step_us = lcm(self.interval_us, SECOND_US)
        return max(0, -((self.first_tick_us - self.started_us) // step_us) * step_us)

    @property
    def plans(self) -> list[PlanWritten]:
        """All that were written."""
        return [entry for entry in self.journal if isinstance(entry, PlanWritten)]


def read_run(folder: Path) -> Recorded:
    """Read the folder of a run that has its report. Raises InvalidSettingsError where something is missing."""
    info = _record(folder, RUN_FILE, RunInfo, "not the folder of a run")
    if info.interrupted:
        raise InvalidSettingsError([f"{folder}: the run was interrupted: what it shows is not a whole run"])
    result = _record(folder, RESULT_FILE, Result, "the run has no report yet: tailpack report makes it")
    columns = stored_columns(folder, EVENTS, COLUMNS)
    if not len(columns["done_us"]):
        raise InvalidSettingsError([f"{folder}: {EVENTS} holds no event"])
    served = _served(columns, result.provenance.started_us)
    if not len(served):
        raise InvalidSettingsError([f"{folder}: no event of this run was finished"])
    texts = stored_columns(folder, JOURNAL, ("entry",))["entry"]
    journal = tuple(sorted(entries(texts), key=lambda entry: entry.at_us))
    if not journal:
        raise InvalidSettingsError([f"{folder}: {JOURNAL} is empty: nothing is known of the autoscaler"])
    return Recorded(info, result, served, journal)


def _record(folder: Path, name: str, into: type[Any], absent: str) -> Any:
    if not folder.is_dir():
        raise InvalidSettingsError([f"{folder}: no such folder"])
    try:
        return into.load(folder)
    except FileNotFoundError as missing:
        raise InvalidSettingsError([f"{folder}: it holds no {name}; {absent}"]) from missing
    except (OSError, msgspec.DecodeError) as wrong:
        raise InvalidSettingsError([f"{folder / name}: cannot be read ({wrong})"]) from wrong


def _served(columns: dict[str, NDArray[Any]], started_us: int) -> Served:
    """Return the events that were finished."""
    accepted_us = columns["accepted_us"].astype(float)
    columns["handed_us"] = np.where(np.isnan(accepted_us), columns["placed_us"], columns["accepted_us"])
    known = ~np.isnan(columns["done_us"].astype(float)) & ~np.isnan(columns["received_us"].astype(float))
    order = np.lexsort((columns["offset"][known], columns["partition"][known]))
    found = {name: values[known][order] for name, values in columns.items()}
    times = ("intended_us", "handed_us", "received_us", "done_us")
    return Served(
        **{name: found[name].astype(np.int64) - started_us for name in times},
        partition=found["partition"].astype(np.int32),
        replica=np.unique(found["replica"].astype(str), return_inverse=True)[1].astype(np.int64),
    )
