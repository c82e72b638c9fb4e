"""One simulated run to be done: scenario, policy, seed, and what is set over the scenario."""

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from bench.simulation.result import SimulationResult

if TYPE_CHECKING:
    from bench.scenario import Scenario


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the simulator. Equal jobs have equal results."""

    scenario: str
    """Name, or path of a TOML file."""
    policy: str
    seed: int = 1
    changes: tuple[tuple[str, Any], ...] = ()
    """Key → value over the scenario's, as `--set` takes them."""
    way: str = ""
    """How the policy is run where it is not simply in charge, as whoever does the job understands it."""

    def question(self) -> "Scenario":
        """Return the scenario with everything that the job says. Raises InvalidSettingsError."""
        from bench.scenario import load_scenario  # noqa: PLC0415  a process that is handed jobs starts without it

        return load_scenario(self.scenario, {**dict(self.changes), "autoscaler.policy": self.policy, "seed": self.seed})

    def key(self, version: str) -> str:
        """Return what stands for this job's result as long as `version`, that of the code, and its scenario stay."""
        return sha256(msgspec.json.encode((version, self.way, self.question()))).hexdigest()[:24]

    def __str__(self) -> str:
        changes = "".join(f", {key}={value}" for key, value in self.changes)
        way = f" ({self.way})" if self.way else ""
        return f"{self.scenario}, {self.policy}{way}, seed {self.seed}{changes}"


def job(scenario: str, policy: str, *, seed: int = 1, changes: Mapping[str, Any] | None = None) -> Job:
    """Return a job; the order in which changes are named makes no difference."""
    hashable = ((key, tuple(value) if isinstance(value, list) else value) for key, value in (changes or {}).items())
    return Job(scenario=scenario, policy=policy, seed=seed, changes=tuple(sorted(hashable)))


def simulated(one: Job) -> SimulationResult:
    """Do the job. Raises InvalidSettingsError, or ValueError for what the simulator refuses."""
    from bench.simulation.run import run_scenario  # noqa: PLC0415  compiled code only where something is simulated

    return run_scenario(one.question(), keep_events=False)[1]
