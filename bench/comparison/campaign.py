"""Many jobs: those that are done already are taken from the folder, the others are computed and kept there."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bench.comparison.job import Job, simulated
from bench.comparison.store import Store
from bench.comparison.version import code_version
from bench.comparison.workers import Failure, Work, outcomes, usable_cores
from bench.simulation.result import SimulationResult

Announce = Callable[[str, int, int], None]
"""Told what was finished last, how many jobs are done, and how many there are."""


def quietly(_said: str, _done: int, _total: int) -> None:
    """Announce nothing."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Where results are kept and how they are computed."""

    folder: Path
    processes: int = field(default_factory=usable_cores)
    announce: Announce = quietly
    work: Work = simulated

    def run(self, jobs: Iterable[Job]) -> "Outcomes":
        """Do every job that is not done yet, each once. Whatever interrupts, finished jobs stay finished.

        Raises InvalidSettingsError for a job whose scenario or settings are wrong, before anything is computed.
        """
        version = code_version()
        keys = {one: one.key(version) for one in dict.fromkeys(jobs)}
        store = Store(self.folder)
        found = {one: kept for one, key in keys.items() if (kept := store.get(key)) is not None}
        failed: dict[Job, str] = {}
        self.announce("", len(found), len(keys))
        missing = [one for one in keys if one not in found]
        with closing(outcomes(missing, self.work, processes=self.processes)) as finished:
            for one, outcome in finished:
                if isinstance(outcome, Failure):
                    failed[one] = outcome.why
                else:
                    store.add(keys[one], outcome)
                    found[one] = outcome
                self.announce(str(one), len(found) + len(failed), len(keys))
        return Outcomes(found, failed)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Results by job, and the reasons of jobs that have none."""

    results: dict[Job, SimulationResult]
    failed: dict[Job, str]
