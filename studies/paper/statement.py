"""What papers say, and the runs that may reproduce it.

Nobody marks anything by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from bench.experiments.campaign import Campaign
from bench.experiments.compare import Missing
from bench.experiments.experiment import Experiment, experiment
from bench.simulation.result import SimulationResult
from loadgen.shapes import IntArray
from loadgen.workloads import WORKLOADS
from report.statistics import paired_difference
from studies.paper.rule import FACT, RULES, off_by, points, value_of
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Published


class PaperFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One row: theirs, ours, and whether they agree."""

    paper: str
    table: str
    what: str
    published: str
    ours: str = "–"
    reading: str = ""
    """The reading under which ours is shown, and what belongs to this row alone."""
    settings: tuple[str, ...] = ()
    """All that was set over the scenario, key=value."""
    readings: tuple[str, ...] = ()
    """Every reading that was run."""
    reproducing: tuple[str, ...] = ()
    """Those that give what was printed."""
    verdict: str = UNKNOWN
    """reproduced, differs or cannot be checked."""
    why: str = ""


class PaperResult(msgspec.Struct, frozen=True, kw_only=True):
    """Every row, and the runs that failed."""

    rows: tuple[PaperFigures, ...]
    missing: tuple[Missing, ...]


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


Results = Mapping[Reading, Sequence[SimulationResult]]
"""Of a claim; a reading that failed is not there."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What stands in a paper, and where."""

    paper: str
    table: str
    what: str

    def claims(self) -> tuple["Claim", ...]:
        """Return the rows that must be run to check it."""
        return ()

    def row(self, found: Mapping["Claim", Results]) -> PaperFigures:
        """Return theirs beside ours. found: what the runs of the claims came to."""
        raise NotImplementedError

    def _beside(self, published: str, **ours: Any) -> PaperFigures:
        return PaperFigures(paper=self.paper, table=self.table, what=self.what, published=published, **ours)


@dataclass(frozen=True, slots=True)
class Claim(Statement):
    """A row of a table, and the runs that may reproduce it."""

    scenario: str
    published: Published
    readings: tuple[Reading, ...]
    reservation: str = ""
    """What keeps ours from being theirs, whatever comes out; said where the row differs."""

    def claims(self) -> tuple["Claim", ...]:
        """Return it alone."""
        return (self,)

    def jobs(self, seeds: int) -> dict[Reading, list[Experiment]]:
        """Return the runs of each reading."""
        return {
            one: [
                replace(experiment(self.scenario, one.policy, seed=seed, changes=dict(one.changes)), way=one.way)
                for seed in range(1, seeds + 1)
            ]
            for one in self.readings
        }

    def row(self, found: Mapping["Claim", Results]) -> PaperFigures:
        """Return the row, shown under the reading that comes nearest."""
        printed = {name: value for name in RULES if (value := getattr(self.published, name)) is not None}
        theirs = ", ".join(RULES[name].printed(value) for name, value in printed.items())
        results = found.get(self, {})
        if not results:
            return self._beside(theirs, why="nothing was run")
        off = {
            reading: {name: off_by(name, value, some) for name, value in printed.items()}
            for reading, some in results.items()
        }
        wide = {
            reading: {name: one for name, one in each.items() if abs(one) > RULES[name].tolerance}
            for reading, each in off.items()
        }
        nearest = min(off, key=lambda one: max(abs(by) / RULES[name].tolerance for name, by in off[one].items()))
        why = [RULES[name].off(by) for name, by in wide[nearest].items()]
        return self._beside(
            theirs,
            ours=", ".join(RULES[name].ours([value_of(name, one) for one in results[nearest]]) for name in printed),
            reading="; ".join(filter(None, [nearest.name, *_settings(nearest.apart), nearest.way])),
            settings=_settings(nearest.changes),
            readings=tuple(one.name for one in results),
            reproducing=tuple(one.name for one in results if not wide[one]),
            verdict=DIFFERS if why else REPRODUCED,
            why="; ".join(filter(None, [*why, self.reservation])) if why else "",
        )


@dataclass(frozen=True, slots=True)
class Contrast(Statement):
    """The conclusion from two rows: `better` keeps more events in SLA than `worse`."""

    better: Claim
    worse: Claim

    def claims(self) -> tuple[Claim, ...]:
        """Return both rows."""
        return (self.better, self.worse)

    def row(self, found: Mapping[Claim, Results]) -> PaperFigures:
        """Return under which readings it holds."""
        printed = points(self.better.published.in_sla - self.worse.published.in_sla)
        better, worse = ({one.name: some for one, some in found.get(row, {}).items()} for row in self.claims())
        shared = {
            name: paired_difference([one.in_sla for one in some], [one.in_sla for one in worse[name]])
            for name, some in better.items()
            if name in worse
        }
        if not shared:
            return self._beside(printed, why="no reading gave both")
        if any(len(some) == 1 for some in better.values()):
            return self._beside(printed, why="a single seed says nothing about chance")
        said = {name: difference.mean > 0 for name, difference in shared.items() if difference.distinguishable}
        opposed = [name for name, agrees in said.items() if not agrees]
        why = f"the opposite under: {'; '.join(opposed)}" if opposed else "" if said else "not distinguishable"
        means = [difference.mean for difference in shared.values()]
        return self._beside(
            printed,
            ours=f"{100 * min(means):+.1f} to {points(max(means))}",
            reading="every reading",
            readings=tuple(shared),
            reproducing=tuple(name for name, agrees in said.items() if agrees),
            verdict=DIFFERS if why else REPRODUCED,
            why=why,
        )


@dataclass(frozen=True, slots=True)
class Fact(Statement):
    """A number that needs no simulation."""

    published: float
    ours: Callable[[], float] = field(compare=False)
    settings: str = ""
    reservation: str = ""

    def row(self, _: Mapping[Claim, Results]) -> PaperFigures:
        """Return both numbers."""
        found = self.ours()
        off = found / self.published - 1
        same = abs(off) <= FACT
        return self._beside(
            _plain(self.published),
            ours=_plain(found),
            reading=self.settings,
            verdict=REPRODUCED if same else DIFFERS,
            why="" if same else "; ".join(filter(None, (f"{100 * off:+.1f} %", self.reservation))),
        )


@dataclass(frozen=True, slots=True)
class Beyond(Statement):
    """A statement that nothing here can prove or disprove."""

    published: str
    why: str

    def row(self, _: Mapping[Claim, Results]) -> PaperFigures:
        """Return theirs alone."""
        return self._beside(self.published, why=self.why)


def reproduce(campaign: Campaign, statements: Sequence[Statement], *, seeds: int) -> PaperResult:
    """Run what the statements need, each run once, and check every statement by the rule.

    Raises InvalidSettingsError before anything is computed.
    """
    jobs = {claim: claim.jobs(seeds) for statement in statements for claim in statement.claims()}
    done = campaign.run(one for readings in jobs.values() for some in readings.values() for one in some)
    found = {
        claim: {
            reading: [done.results[one] for one in some]
            for reading, some in readings.items()
            if all(one in done.results for one in some)
        }
        for claim, readings in jobs.items()
    }
    rows = []
    for statement in statements:
        row = statement.row(found)
        if isinstance(statement, Claim) and not found[statement]:
            reasons = {done.failed[one] for some in jobs[statement].values() for one in some if one in done.failed}
            row = replace(row, why="; ".join(sorted(reasons)))
        rows.append(row)
    missing = [Missing(run=str(one), why=why) for one, why in done.failed.items()]
    return PaperResult(rows=tuple(rows), missing=tuple(missing))


def totals(workload: str) -> IntArray:
    """Return how many events each second has, shape (seconds,)."""
    counts = np.asarray(WORKLOADS[workload].counts())
    return counts if counts.ndim == 1 else np.asarray(counts.sum(axis=1))


def _settings(changes: Sequence[tuple[str, Any]]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in changes)


def _plain(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
