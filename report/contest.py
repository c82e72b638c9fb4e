"""Which runs may be compared: those of one load in one group, and in it a contestant for each policy and setting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from report.result import Result
from report.run_info import RunInfo

LOAD: Final = ("duration_s", "load.workload", "load.spacing", "payment.partitions", "target.latency_target_s")
"""Settings that must agree: with others, other events come, or another promise is made."""
UNTOLD: Final = frozenset({"name", "description", "topology", "seed", "autoscaler.policy", "target.percentile", *LOAD})
"""Settings that labels do not repeat."""
SIMULATION: Final = "simulation."
"""Settings that a live run has, and does not use."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A run that is to be compared."""

    folder: Path
    info: RunInfo
    result: Result

    def settings(self) -> dict[str, Any]:
        """Return dotted key → value of all that the run was told."""
        told = dict(_flat(self.info.scenario))
        live = self.info.world == "live"
        return {key: value for key, value in told.items() if not (live and key.startswith(SIMULATION))}

    def load(self) -> tuple[Any, ...]:
        """Return what its group has in common."""
        told = self.settings()
        return (self.result.scenario, *(told.get(key) for key in LOAD))


Pair = tuple[Entrant, Entrant]
"""A run, and the one of the reference that it meets."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Runs of one load, by the label of the contestant; in the order in which they were named."""

    scenario: str
    settings: tuple[str, ...]
    contestants: Mapping[str, Sequence[Entrant]]

    @property
    def reference(self) -> str:
        """Return the label that the others are compared with."""
        return next(iter(self.contestants))

    def pairs(self, label: str) -> list[Pair]:
        """Return runs of `label` and of the reference with the same seed; the k-th of a seed meets the k-th."""
        theirs = _by_turn(self.contestants[self.reference])
        return [(one, theirs[turn]) for turn, one in _by_turn(self.contestants[label]).items() if turn in theirs]


def contests(entrants: Sequence[Entrant]) -> list[Contest]:
    """Return the groups, by the first run named of each."""
    groups: dict[tuple[Any, ...], list[Entrant]] = {}
    for one in entrants:
        groups.setdefault(one.load(), []).append(one)
    return [Contest(load[0], _apart(load, list(groups)), _labelled(some)) for load, some in groups.items()]


def _labelled(entrants: Sequence[Entrant]) -> dict[str, list[Entrant]]:
    """Return label → runs. A label says all in which its runs differ from others of the group."""
    told = [one.settings() for one in entrants]
    both = len({one.info.world for one in entrants}) > 1
    keys = sorted({key for each in told for key in each} - UNTOLD)
    differing = [key for key in keys if len({repr(each[key]) for each in told if key in each}) > 1]
    found: dict[str, list[Entrant]] = {}
    for one, each in zip(entrants, told, strict=True):
        policy = one.info.policy + (f" ({one.info.world})" if both else "")
        label = ", ".join([policy, *(f"{key}={each[key]}" for key in differing if key in each)])
        found.setdefault(label, []).append(one)
    return found


def _apart(load: tuple[Any, ...], all_loads: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Return key=value of what tells a load from others of the same name."""
    namesakes = [other for other in all_loads if other[0] == load[0]]
    return tuple(
        f"{key}={load[place]}"
        for place, key in enumerate(LOAD, start=1)
        if any(other[place] != load[place] for other in namesakes)
    )


def _by_turn(entrants: Sequence[Entrant]) -> dict[tuple[int, int], Entrant]:
    """Return (seed, how many runs of it came before) → run."""
    found: dict[tuple[int, int], Entrant] = {}
    for one in entrants:
        turn = sum(seed == one.info.seed for seed, _ in found)
        found[one.info.seed, turn] = one
    return found


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
