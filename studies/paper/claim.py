"""What a paper says, what we run to see whether it is so, and the row that comes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bench.experiments.experiment import Experiment, experiment
from studies.published import Published

REPRODUCED: Final = "reproduced"
DIFFERS: Final = "differs"
UNKNOWN: Final = "cannot be checked"


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand what was run."""

    name: str
    policy: str
    changes: tuple[tuple[str, Any], ...]
    """Key → value over the scenario's."""
    apart: tuple[tuple[str, Any], ...] = ()
    """Those of the changes that belong to the row, not to the reading."""
    way: str = ""
    """How the policy is run, where it is not simply put in charge: see `studies.paper.work`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of a table, and the runs that may reproduce it."""

    paper: str
    table: str
    what: str
    scenario: str
    published: Published
    readings: tuple[Reading, ...]
    reservation: str = ""
    """What keeps ours from being theirs, whatever comes out; said where the row differs."""

    def jobs(self, seeds: int) -> dict[Reading, list[Experiment]]:
        """Return the runs of each reading."""
        return {
            one: [
                msgspec.structs.replace(
                    experiment(self.scenario, one.policy, seed=seed, changes=dict(one.changes)), way=one.way
                )
                for seed in range(1, seeds + 1)
            ]
            for one in self.readings
        }


@dataclass(frozen=True, slots=True)
class Contrast:
    """The conclusion from two rows: `better` keeps more events in SLA than `worse`."""

    paper: str
    table: str
    what: str
    better: Claim
    worse: Claim


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that needs no simulation."""

    paper: str
    table: str
    what: str
    published: float
    ours: Callable[[], float] = field(compare=False)
    settings: str = ""
    reservation: str = ""


@dataclass(frozen=True, slots=True)
class Beyond:
    """A statement that nothing here can prove or disprove."""

    paper: str
    table: str
    what: str
    published: str
    why: str


class PaperFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One row: theirs, ours, and whether they agree."""

    paper: str
    table: str
    what: str
    published: str
    ours: str
    reading: str
    """The reading under which ours is shown, and what belongs to this row alone."""
    settings: tuple[str, ...]
    """All that was set over the scenario, key=value."""
    readings: tuple[str, ...]
    """Every reading that was run."""
    reproducing: tuple[str, ...]
    """Those that give what was printed."""
    verdict: str
    """reproduced, differs or cannot be checked."""
    why: str
