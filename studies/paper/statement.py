"""What papers say, and the runs that may reproduce it.

Nobody marks anything by hand.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from bench.experiments.campaign import Missing, Simulations
from bench.experiments.experiment import Experiment, experiment
from bench.simulation.result import SimulationResult
from loadgen.shapes import IntArray
from loadgen.workloads import WORKLOADS
from studies.paper.rule import FACT, ROUNDING, RULES, SHARE, distance, misses, points, value_of
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Published


class PaperFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One row: theirs, ours, and whether they agree."""

    paper: str
    table: str
    what: str
    published: str
    ours: str = "–"
    reading: str = ""
    """The paper's one reading, and what belongs to this row alone."""
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

    def holds(self, found: Mapping["Claim", Results]) -> dict[str, bool]:
        """Return whether it is reproduced, by the name of the reading; nothing where readings make no difference.

        found: what the runs of the claims came to.
        """
        return {}

    def row(self, found: Mapping["Claim", Results], reading: str = "") -> PaperFigures:
        """Return theirs beside ours. reading: by which all rows of the paper are judged."""
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

    @property
    def printed(self) -> dict[str, float]:
        """Return the figures that were printed, by name."""
        return {name: value for name in RULES if (value := getattr(self.published, name)) is not None}

    def holds(self, found: Mapping["Claim", Results]) -> dict[str, bool]:
        """Return by which readings some seed has all that was printed."""
        return {
            one.name: any(not misses(self.printed, run) for run in some) for one, some in found.get(self, {}).items()
        }

    def row(self, found: Mapping["Claim", Results], reading: str = "") -> PaperFigures:
        """Return the row; the reading is the claim's own where it has but one."""
        printed, results = self.printed, found.get(self, {})
        theirs = ", ".join(RULES[name].printed(value) for name, value in printed.items())
        theirs += f" (elsewhere {self.published.elsewhere})" if self.published.elsewhere else ""
        used = next((one for one in results if one.name == reading or len(self.readings) == 1), None)
        if used is None:
            return self._beside(theirs, why="nothing was run")
        some = results[used]
        nearest = min(some, key=lambda run: distance(printed, run))
        why = [RULES[name].off(by) for name, by in misses(printed, nearest).items()]
        holds = self.holds(found)
        return self._beside(
            theirs,
            ours=", ".join(RULES[name].ours([value_of(name, run) for run in some]) for name in printed),
            reading="; ".join(filter(None, [used.name, *_settings(used.apart), used.way])),
            settings=_settings(used.changes),
            readings=tuple(holds),
            reproducing=tuple(name for name, good in holds.items() if good),
            verdict=DIFFERS if why else REPRODUCED,
            why="; ".join(filter(None, [*why, self.reservation])) if why else "",
        )


@dataclass(frozen=True, slots=True)
class Contrast(Statement):
    """The difference between two rows: by how many more events `better` keeps in SLA than `worse`."""

    better: Claim
    worse: Claim

    def claims(self) -> tuple[Claim, ...]:
        """Return both rows."""
        return (self.better, self.worse)

    @property
    def printed(self) -> float:
        """Return by how many events in SLA the one is better in print."""
        return self.better.published.in_sla - self.worse.published.in_sla

    def differences(self, found: Mapping[Claim, Results]) -> dict[str, list[float]]:
        """Return the difference of each seed, by the readings that both rows share."""
        better, worse = ({one.name: some for one, some in found.get(row, {}).items()} for row in self.claims())
        return {
            name: [one.in_sla - other.in_sla for one, other in zip(some, worse[name], strict=True)]
            for name, some in better.items()
            if name in worse
        }

    def holds(self, found: Mapping[Claim, Results]) -> dict[str, bool]:
        """Return by which readings some seed has the printed difference."""
        return {name: abs(self._off(some)) <= SHARE + ROUNDING for name, some in self.differences(found).items()}

    def row(self, found: Mapping[Claim, Results], reading: str = "") -> PaperFigures:
        """Return the difference beside theirs."""
        some = self.differences(found).get(reading)
        if not some:
            return self._beside(points(self.printed), why="the reading did not give both")
        holds = self.holds(found)
        return self._beside(
            points(self.printed),
            ours=f"{points(fmean(some))} ({100 * min(some):+.1f} to {100 * max(some):+.1f})",
            reading=reading,
            readings=tuple(holds),
            reproducing=tuple(name for name, good in holds.items() if good),
            verdict=REPRODUCED if holds[reading] else DIFFERS,
            why="" if holds[reading] else f"{points(self._off(some))} beside it",
        )

    def _off(self, some: Sequence[float]) -> float:
        """Return by how much the nearest difference lies above (+) or below (−) the printed one."""
        return min((one - self.printed for one in some), key=abs)


@dataclass(frozen=True, slots=True)
class Fact(Statement):
    """A number that needs no simulation."""

    published: float
    ours: Callable[[], float] = field(compare=False)
    settings: str = ""
    reservation: str = ""

    def row(self, _: Mapping[Claim, Results], reading: str = "") -> PaperFigures:
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

    def row(self, _: Mapping[Claim, Results], reading: str = "") -> PaperFigures:
        """Return theirs alone."""
        return self._beside(self.published, why=self.why)


def reproduce(campaign: Simulations, statements: Sequence[Statement], *, seeds: int) -> PaperResult:
    """Run what the statements need, each run once, and check every statement by the rule.

    Raises InvalidSettingsError before anything is computed.
    """
    jobs = {claim: claim.jobs(seeds) for statement in statements for claim in statement.claims()}
    done = campaign.run(one for readings in jobs.values() for some in readings.values() for one in some)
    found = {claim: done.whole(readings) for claim, readings in jobs.items()}
    papers = dict.fromkeys(one.paper for one in statements)
    chosen = {paper: reading_of([one for one in statements if one.paper == paper], found) for paper in papers}
    rows = []
    for statement in statements:
        row = statement.row(found, chosen[statement.paper])
        if isinstance(statement, Claim) and not found[statement]:
            reasons = {done.failed[one] for some in jobs[statement].values() for one in some if one in done.failed}
            row = replace(row, why="; ".join(sorted(reasons)))
        rows.append(row)
    return PaperResult(rows=tuple(rows), missing=tuple(done.missing))


def reading_of(statements: Sequence[Statement], found: Mapping[Claim, Results]) -> str:
    """Return the reading under which most statements of a paper hold; of equals the first; empty: there is none."""
    count: Counter[str] = Counter()
    for one in statements:
        holds = one.holds(found)
        if len(holds) > 1:  # else it has the same figures under all
            count.update({name: int(good) for name, good in holds.items()})
    return max(count, key=count.__getitem__, default="")


def totals(workload: str) -> IntArray:
    """Return how many events each second has, shape (seconds,)."""
    counts = np.asarray(WORKLOADS[workload].counts())
    return counts if counts.ndim == 1 else np.asarray(counts.sum(axis=1))


def _settings(changes: Sequence[tuple[str, Any]]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in changes)


def _plain(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
