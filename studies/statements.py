"""Compare printed table rows, differences between two rows, and single numbers with our runs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, NamedTuple

from bench.matrix import FAILED, Changes, Job, Row, sorted_changes
from report.wording import share
from studies.verdict import FACT, Statement, verdict

SHARE: Final = 0.01
ROUNDING: Final = 1e-12


class Rule(NamedTuple):
    """How a figure is printed, and how much our figure of one seed may differ from the published one."""

    figure: str
    """Name in our rows."""
    text: Callable[[float], str]
    tolerance: float


RULES: Final = {
    "in_sla": Rule("in_sla", share, SHARE),
    "replica_minutes": Rule("replica_minutes", "{:.4g} r-m".format, 0.03),
    "ups": Rule("replicas_added", "{:.3g} ups".format, 1),
    "downs": Rule("replicas_removed", "{:.3g} downs".format, 1),
    "max_below_s": Rule("max_s", "worst {:.2f} s".format, 1e-9),
}
"""Printed figure → its rule. The tolerance of replica-minutes is relative. Ups and downs are numbers of replicas."""


def points(difference: float) -> str:
    """Return a difference of two shares of events as text."""
    return f"{100 * difference:+.1f} points"


@dataclass(frozen=True, slots=True)
class Interpretation:
    """Policy and settings of a run. The paper leaves some of them open."""

    name: str
    policy: str
    changes: Changes
    """Changes of the scenario."""
    row_changes: Changes = ()
    """Those of `changes` that belong to the row, not to the interpretation."""
    how: str = ""
    """Mode of the run, see `studies.same_counts`; empty: the policy decides."""


Results = Mapping[str, Sequence[Row]]
"""Name of an interpretation → one row per seed. Interpretations with a failed run are left out."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A row of a printed table, and the interpretations that may reproduce it."""

    paper: str
    table: str
    what: str
    scenario: str
    printed: Mapping[str, float]
    interpretations: tuple[Interpretation, ...]
    reservation: str = ""
    """Reason why our figures may differ, printed if they do."""

    def jobs(self, seeds: int) -> dict[str, list[Job]]:
        """Return the jobs of each interpretation."""
        return {
            case.name: [
                Job(scenario=self.scenario, policy=case.policy, seed=seed, changes=case.changes, how=case.how)
                for seed in range(1, seeds + 1)
            ]
            for case in self.interpretations
        }

    def off(self, row: Row) -> dict[str, float]:
        """Return for each printed figure ours minus the printed one; replica-minutes: divided by the printed one."""
        found = {name: self.figure(name, row) - value for name, value in self.printed.items()}
        if "max_below_s" in found:
            found["max_below_s"] = max(0.0, found["max_below_s"])
        if "replica_minutes" in found:
            found["replica_minutes"] /= self.printed["replica_minutes"]
        return found

    def misses(self, row: Row) -> dict[str, float]:
        """Return the differences that exceed their tolerance."""
        return {name: by for name, by in self.off(row).items() if abs(by) > RULES[name].tolerance + ROUNDING}

    def holds(self, found: "Mapping[Run, Results]") -> dict[str, bool]:
        """Return interpretation → whether all figures of at least one seed are within their tolerances."""
        return {name: any(not self.misses(row) for row in rows) for name, rows in found.get(self, {}).items()}

    def row(self, found: "Mapping[Run, Results]", reading: str) -> Statement:
        """Return the statement under the interpretation `reading`, or under the row's only interpretation."""
        printed_text = ", ".join(RULES[name].text(value) for name, value in self.printed.items())
        results = found.get(self, {})
        tried = self.interpretations
        used = next((each for each in tried if each.name == reading or len(tried) == 1), None)
        if used is None or used.name not in results:
            return _statement(self, printed_text, why="no run finished")
        rows = results[used.name]
        nearest = min(rows, key=lambda row: max(abs(by) / RULES[name].tolerance for name, by in self.off(row).items()))
        misses = ", ".join(RULES[name].text(self.figure(name, nearest)) for name in self.misses(nearest))
        row_changes = [f"{key}={value}" for key, value in used.row_changes]
        return _statement(
            self,
            printed_text,
            ours=", ".join(RULES[rule].text(fmean(self.figure(rule, row) for row in rows)) for rule in self.printed),
            reading="; ".join(filter(None, [used.name, *row_changes, used.how])),
            verdict=verdict(not misses),
            why="; ".join(filter(None, [f"nearest seed: {misses}", self.reservation])) if misses else "",
        )

    @staticmethod
    def figure(name: str, row: Row) -> float:
        """Return our value of a printed figure."""
        return float(row.get(RULES[name].figure) or 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contrast:
    """The difference of two rows: share of events in time of `better` minus that of `worse`."""

    paper: str
    table: str
    what: str
    better: Run
    worse: Run

    def differences(self, found: Mapping[Run, Results]) -> dict[str, list[float]]:
        """Return interpretation → difference of each seed, for interpretations that both rows have."""
        better, worse = (found.get(run, {}) for run in (self.better, self.worse))
        return {
            name: [row["in_sla"] - other["in_sla"] for row, other in zip(rows, worse[name], strict=True)]
            for name, rows in better.items()
            if name in worse
        }

    def _off(self, differences: Sequence[float]) -> float:
        printed = self.better.printed["in_sla"] - self.worse.printed["in_sla"]
        return min((difference - printed for difference in differences), key=abs)

    def holds(self, found: Mapping[Run, Results]) -> dict[str, bool]:
        """Return interpretation → whether at least one seed has the printed difference."""
        return {name: abs(self._off(some)) <= SHARE + ROUNDING for name, some in self.differences(found).items()}

    def row(self, found: Mapping[Run, Results], reading: str) -> Statement:
        """Return the statement about the difference."""
        printed_text = points(self.better.printed["in_sla"] - self.worse.printed["in_sla"])
        if not (some := self.differences(found).get(reading)):
            return _statement(self, printed_text, why="the interpretation lacks one of both rows")
        return _statement(
            self,
            printed_text,
            ours=f"{points(fmean(some))} ({100 * min(some):+.1f} to {100 * max(some):+.1f})",
            reading=reading,
            verdict=verdict(self.holds(found)[reading]),
            why="" if self.holds(found)[reading] else f"{points(self._off(some))} off",
        )


def _statement(row: "Run | Contrast", published: str, **ours: Any) -> Statement:
    return Statement(paper=row.paper, table=row.table, what=row.what, published=published, **ours)


Printed = Run | Contrast | Statement
"""A statement of a paper. A `Statement` needs no run and has its verdict already."""


def fact(published: float, ours: float, *, reservation: str = "", **where: Any) -> Statement:
    """Return the statement about a number that needs no simulation. reservation: reason for a difference."""
    off = ours / published - 1
    printed_text, own = (f"{value:,.2f}".rstrip("0").rstrip(".") for value in (published, ours))
    why = "" if abs(off) <= FACT else "; ".join(filter(None, (f"{100 * off:+.1f} %", reservation)))
    return Statement(published=printed_text, ours=own, verdict=verdict(not why), why=why, **where)


def under_best_interpretation(
    statements: Sequence[Printed], jobs: Mapping[Run, Mapping[str, Sequence[Job]]], rows: Mapping[Job, Row]
) -> Iterator[Statement]:
    """Yield each statement of a paper with its verdict, under the interpretation that reproduces most of them."""
    found = {
        run: {
            name: [rows[job] for job in some]
            for name, some in interpretations.items()
            if not any(FAILED in rows[job] for job in some)
        }
        for run, interpretations in jobs.items()
    }
    count: Counter[str] = Counter()
    for statement in statements:
        if not isinstance(statement, Statement) and len(holds := statement.holds(found)) > 1:
            count.update({name: int(good) for name, good in holds.items()})
    reading = max(count, key=count.__getitem__, default="")
    for statement in statements:
        yield statement if isinstance(statement, Statement) else statement.row(found, reading)


def interpretations(
    policy: str, changes: Mapping[str, Mapping[str, Any]], row: Mapping[str, Any] | None = None, how: str = ""
) -> tuple[Interpretation, ...]:
    """Return an interpretation for each entry of `changes` (name → settings). row: settings added to all of them."""
    own = dict(row or {})
    return tuple(
        Interpretation(name, policy, sorted_changes({**base, **own}), sorted_changes(own), how)
        for name, base in changes.items()
    )
