"""Comparisons of policies in the laboratory: the same seeds for each, in this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.jobs import simulate_job
from bench.matrix import Case, Contender
from bench.matrix_page import COLUMNS, table
from bench.matrix_table import Line, lines_of
from bench.random_scenarios import random_case
from report.picture import BLUE, RED, Picture, picture
from tailpack.lab.runs import configured

SHOWN = ("policy", "in time", "least seed", "r-m", "changes", "points more", "r-m more", "Pareto front")
Entry = str | type | tuple[str | type, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Means of several policies with 95 % intervals, and paired differences from the first one."""

    rows: tuple[Line, ...]
    """One per policy. `figures` has means and intervals, such as `figures["in_sla"].mean`."""

    @property
    def points(self) -> dict[str, tuple[float, float]]:
        """Name of the policy → mean share in time, and mean cost in replica-minutes."""
        figures = {row.policy: row.figures for row in self.rows}
        return {name: (some["in_sla"].mean, some["replica_minutes"].mean) for name, some in figures.items()}

    def front(self, share: float = 0.999) -> Picture:
        """Draw cost and late events of each policy, or of each value of its option; the dashed line is the SLO."""
        with picture("cheaper is left, fewer late events is down; blue: no point is better in both") as (
            drawn,
            (axes,),
        ):
            for row in self.rows:
                in_time, cost = self.points[row.policy]
                axes.plot(cost, max(1 - in_time, 1e-6), "o", color=BLUE if row.on_front else "0.6")
                axes.annotate(
                    row.policy.rpartition("=")[2], (cost, max(1 - in_time, 1e-6)), (4, 4), textcoords="offset points"
                )
            axes.axhline(1 - share, color=RED, linestyle="--")
            axes.set(xlabel="replica-minutes", ylabel="share of late events (0 at 10⁻⁶)", yscale="log")
            axes.margins(x=0.3, y=0.15)
        return drawn

    def _repr_markdown_(self) -> str:
        return table(SHOWN, [[COLUMNS[name](row) for name in SHOWN] for row in self.rows])


def compare(scenario: str, policies: Sequence[Entry], *, seeds: int = 20, **settings: Any) -> Comparison:
    """Simulate policies in a scenario with the same seeds, and return means, intervals and differences.

    scenario: as in `simulate`, or `random-N`, a random scenario in which replicas take time to start. settings: as in
    `simulate`. seeds: number of seeds. A scenario without random parts is simulated once. policies: names, classes
    with `decide`, or pairs of one of them and its options, as `("keda-hpa", {"lag_threshold": 5})`. Raises
    InvalidSettingsError for wrong names or values, and ValueError for no policy or a plan that is not possible.
    """
    pairs = [entry if isinstance(entry, tuple) else (entry, {}) for entry in policies]
    if not pairs or not all(policy for policy, _ in pairs):
        raise ValueError("policies must have at least one policy, and no empty name")
    contenders = []
    for policy, options in pairs:
        with configured(policy, {**settings, **options}) as changes:
            name = changes.pop("autoscaler.policy")
        label = ", ".join([name, *(f"{key}={value}" for key, value in options.items())])
        contenders.append(Contender(policy=name, name=label, set=changes))
    number = scenario.removeprefix("random-")
    case = random_case(int(number)) if number.isdecimal() else Case(scenario=scenario, label=scenario)
    entries = [(contender, *case.jobs(contender, seeds)) for contender in contenders]
    rows = {job: simulate_job(job) for _, jobs, _ in entries for job in jobs}
    return Comparison(tuple(lines_of(case, entries, rows)))


def random_partitions(number: int) -> int:
    """Return the number of partitions of a random scenario, which is the largest useful number of replicas."""
    return int(random_case(number).set["partitions"])
