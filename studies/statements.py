"""How a printed table row, a difference of two rows, and a plain number are compared with our runs."""

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
    """How a figure is written, and how far a printed one may be from that of one seed."""

    figure: str
    """Name in a row of ours."""
    printed: Callable[[Any], str]
    ours: Callable[[Sequence[float]], str]
    off: Callable[[float], str]
    tolerance: float


def points(difference: float) -> str:
    """Return a difference of two shares of events in words."""
    return f"{100 * difference:+.1f} points"


def _shares(values: Sequence[float]) -> str:
    spread = f" ({share(min(values))} to {share(max(values))})" if max(values) - min(values) >= 0.00005 else ""
    return f"{share(fmean(values))}{spread}"


def _count(figure: str, noun: str) -> Rule:
    return Rule(
        figure, f"{{:g}} {noun}".format, lambda one: f"{fmean(one):.3g} {noun}", f"scale-{noun} {{:+g}}".format, 1
    )


RULES: Final = {
    "in_sla": Rule("in_sla", share, _shares, lambda off: f"in SLA {points(off)}", SHARE),
    "replica_minutes": Rule(
        "replica_minutes", "{:g} r-m".format, lambda one: f"{fmean(one):.4g} r-m",
        lambda off: f"r-m {100 * off:+.1f} %", 0.03,
    ),
    "ups": _count("replicas_added", "ups"),
    "downs": _count("replicas_removed", "downs"),
    "max_below_s": Rule(
        "max_s", "worst < {:g} s".format, lambda one: f"worst {max(one):.2f} s", "worst event {:+.2f} s".format, 1e-9
    ),
}  # fmt: skip
"""Name of a printed figure → its rule. Replica-minutes are off by a share of what was printed. Printed ups and downs
are what the number of replicas grew and shrank by, so they count replicas, not decisions."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One interpretation of what was run."""

    name: str
    policy: str
    changes: Changes
    """Over the scenario's."""
    apart: Changes = ()
    """Those of the changes that belong to the row, not to the interpretation."""
    how: str = ""
    """How the policy is run, where it is not simply in charge: see `studies.same_counts`."""


Results = Mapping[str, Sequence[Row]]
"""Name of an interpretation → a row for each seed. An interpretation with a failed run is absent."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Printed:
    """Something that a paper states."""

    paper: str
    table: str
    what: str

    def runs(self) -> "tuple[Run, ...]":
        """Return the table rows that must be simulated to check it."""
        return ()

    def holds(self, found: "Mapping[Run, Results]") -> dict[str, bool]:
        """Return under which interpretations it is reproduced; nothing where they make no difference."""
        return {}

    def row(self, found: "Mapping[Run, Results]", reading: str) -> Statement:
        """Return theirs next to ours. reading: the interpretation of the whole paper."""
        raise NotImplementedError

    def _beside(self, published: str, **ours: Any) -> Statement:
        return Statement(paper=self.paper, table=self.table, what=self.what, published=published, **ours)


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(Printed):
    """A row of a table, and the interpretations that may reproduce it."""

    scenario: str
    printed: Mapping[str, float]
    readings: tuple[Reading, ...]
    elsewhere: str = ""
    """What the same paper prints of the same run in another place."""
    reservation: str = ""
    """Why ours cannot be theirs; printed where the row differs."""

    def runs(self) -> "tuple[Run, ...]":
        """Return the row itself."""
        return (self,)

    def jobs(self, seeds: int) -> dict[str, list[Job]]:
        """Return the jobs of each interpretation."""
        return {
            one.name: [
                Job(scenario=self.scenario, policy=one.policy, seed=seed, changes=one.changes, how=one.how)
                for seed in range(1, seeds + 1)
            ]
            for one in self.readings
        }

    def off(self, row: Row) -> dict[str, float]:
        """Return by how much each figure of a run is above (+) or below (−) what was printed."""
        found = {name: float(row.get(RULES[name].figure) or 0.0) - value for name, value in self.printed.items()}
        if "max_below_s" in found:
            found["max_below_s"] = max(0.0, found["max_below_s"])
        if "replica_minutes" in found:
            found["replica_minutes"] /= self.printed["replica_minutes"]
        return found

    def misses(self, row: Row) -> dict[str, float]:
        """Return the figures of a run that are too far off."""
        return {name: by for name, by in self.off(row).items() if abs(by) > RULES[name].tolerance + ROUNDING}

    def holds(self, found: "Mapping[Run, Results]") -> dict[str, bool]:
        """Return under which interpretations one seed has all that was printed."""
        return {name: any(not self.misses(row) for row in rows) for name, rows in found.get(self, {}).items()}

    def row(self, found: "Mapping[Run, Results]", reading: str) -> Statement:
        """Return the row; its interpretation is its own where it has but one."""
        theirs = ", ".join(RULES[name].printed(value) for name, value in self.printed.items())
        theirs += f" (elsewhere {self.elsewhere})" if self.elsewhere else ""
        results, holds = found.get(self, {}), self.holds(found)
        used = next((one for one in self.readings if one.name == reading or len(self.readings) == 1), None)
        if used is None or used.name not in results:
            return self._beside(theirs, why="nothing was run")
        rows = results[used.name]
        nearest = min(rows, key=lambda row: max(abs(by) / RULES[name].tolerance for name, by in self.off(row).items()))
        why = [RULES[name].off(by) for name, by in self.misses(nearest).items()]
        apart = [f"{key}={value}" for key, value in used.apart]
        return self._beside(
            theirs,
            ours=", ".join(
                RULES[name].ours([float(row.get(RULES[name].figure) or 0.0) for row in rows]) for name in self.printed
            ),
            reading="; ".join(filter(None, [used.name, *apart, used.how])),
            reproducing=tuple(name for name, good in holds.items() if good),
            verdict=verdict(not why),
            why="; ".join(filter(None, [*why, self.reservation])) if why else "",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Contrast(Printed):
    """The difference of two rows: by how many more events `better` keeps in time than `worse`."""

    better: Run
    worse: Run

    def runs(self) -> tuple[Run, ...]:
        """Return both rows."""
        return (self.better, self.worse)

    def differences(self, found: Mapping[Run, Results]) -> dict[str, list[float]]:
        """Return the difference of each seed under each interpretation that both rows share."""
        better, worse = (found.get(run, {}) for run in self.runs())
        return {
            name: [one["in_sla"] - other["in_sla"] for one, other in zip(rows, worse[name], strict=True)]
            for name, rows in better.items()
            if name in worse
        }

    def _off(self, differences: Sequence[float]) -> float:
        """Return by how much the nearest difference is above (+) or below (−) the printed one."""
        printed = self.better.printed["in_sla"] - self.worse.printed["in_sla"]
        return min((one - printed for one in differences), key=abs)

    def holds(self, found: Mapping[Run, Results]) -> dict[str, bool]:
        """Return under which interpretations one seed has the printed difference."""
        return {name: abs(self._off(some)) <= SHARE + ROUNDING for name, some in self.differences(found).items()}

    def row(self, found: Mapping[Run, Results], reading: str) -> Statement:
        """Return the difference next to theirs."""
        theirs = points(self.better.printed["in_sla"] - self.worse.printed["in_sla"])
        some, holds = self.differences(found).get(reading), self.holds(found)
        if not some:
            return self._beside(theirs, why="the interpretation did not give both")
        return self._beside(
            theirs,
            ours=f"{points(fmean(some))} ({100 * min(some):+.1f} to {100 * max(some):+.1f})",
            reading=reading,
            reproducing=tuple(name for name, good in holds.items() if good),
            verdict=verdict(holds[reading]),
            why="" if holds[reading] else f"{points(self._off(some))} off",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Fact(Printed):
    """A number that needs no simulation."""

    published: float
    ours: Callable[[], float]
    settings: str = ""
    reservation: str = ""

    def row(self, found: Mapping[Run, Results], reading: str) -> Statement:
        """Return both numbers."""
        ours = self.ours()
        off = ours / self.published - 1
        theirs, own = (f"{value:,.2f}".rstrip("0").rstrip(".") for value in (self.published, ours))
        why = "" if abs(off) <= FACT else "; ".join(filter(None, (f"{100 * off:+.1f} %", self.reservation)))
        return self._beside(theirs, ours=own, reading=self.settings, verdict=verdict(not why), why=why)


@dataclass(frozen=True, eq=False, kw_only=True)
class Beyond(Printed):
    """A statement that nothing here can prove or disprove."""

    published: str
    why: str

    def row(self, found: Mapping[Run, Results], reading: str) -> Statement:
        """Return theirs alone."""
        return self._beside(self.published, why=self.why)


def judged(statements: Sequence[Printed], jobs: Mapping[Run, Mapping[str, Sequence[Job]]], rows: Mapping[Job, Row]
           ) -> Iterator[Statement]:  # fmt: skip
    """Yield each statement of one paper with its verdict, under the interpretation that reproduces most of them."""
    found = {
        run: {
            name: [rows[job] for job in some]
            for name, some in readings.items()
            if not any(FAILED in rows[job] for job in some)
        }
        for run, readings in jobs.items()
    }
    count: Counter[str] = Counter()
    for one in statements:
        if len(holds := one.holds(found)) > 1:
            count.update({name: int(good) for name, good in holds.items()})
    reading = max(count, key=count.__getitem__, default="")
    for one in statements:
        yield one.row(found, reading)


def readings(
    policy: str, changes: Mapping[str, Mapping[str, Any]], row: Mapping[str, Any] | None = None, how: str = ""
) -> tuple[Reading, ...]:
    """Return an interpretation for each of `changes`, by name. row: what this row is about, set in each of them."""
    own = dict(row or {})
    return tuple(
        Reading(name, policy, sorted_changes({**one, **own}), sorted_changes(own), how) for name, one in changes.items()
    )
