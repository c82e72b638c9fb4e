"""Chooses the contenders of a backtest, and runs them on the parts of a trace."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.policies.keda_hpa import KedaHpaSettings
from autoscaler.policies.registry import fixed_count
from bench.backtest.current import Current
from bench.backtest.parts import Part, replica_limit
from bench.jobs import FAILED, Job, Row, sorted_changes
from bench.matrix import Contender
from loadgen.schedule import Spacing
from loadgen.shapes import IntArray
from report.measures import Floats

BASE: Final = "w1"
"""Scenario with the defaults of all settings that the user does not state. The trace replaces its load."""
COUNTS: Final = (*range(1, 13), 15, 20, 25, 30, 40, 50, 75, 100)
"""Constant counts among which the cheapest one that meets the SLO is chosen."""
TIMED: Final = ("sync_s", "failures_s", "stabilisation", "cool_down")
"""Parts of the names of settings by which a decision depends on when others were made."""
EVERY: Final = 4
"""Settings are tuned on every fourth part, if there are several."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison that a user asks for, with its conditions."""

    trace: Path
    current: Current
    policies: Sequence[Contender] = (Contender(policy="tail-aware"),)
    set: Mapping[str, Any] = {}
    """Setting of a scenario → value, for all contenders."""
    service_time_s: float
    latency_target_s: float
    percentile: float
    """Share of events that must be in time, for example 0.999."""
    spacings: Sequence[Spacing] = (Spacing.SMOOTH,)
    """Distributions of the events within a second. Two of them give a band."""
    partitions: int
    """Number of partitions, for a trace that does not have it."""
    most: int
    """Maximum number of replicas."""


def likely_counts(question: Question, counts: IntArray) -> list[Contender]:
    """Return the constant counts from the first that a queue for each replica and second allows.

    counts: events by second and partition. The queue knows no bursts, so a simulation chooses among the counts.
    """
    rate, possible = 1 / question.service_time_s, [one for one in COUNTS if one <= question.most]
    allowed, first = (1 - question.percentile) * counts.sum(), -1
    for replicas in possible:
        late, first = 0.0, first + 1
        for replica in range(replicas):
            events = counts[:, replica::replicas].sum(axis=1)
            surplus = np.cumsum(events - rate)
            waiting = surplus - np.minimum(np.minimum.accumulate(surplus), 0.0)
            late += float(events[waiting > rate * question.latency_target_s].sum())
        if late <= allowed:
            break
    chosen = possible[max(0, min(first - 1, len(possible) - 3)) :]
    return [Contender(policy=f"static-{one}", name=f"fixed {one}") for one in chosen]


class Runs:
    """Runs contenders on parts."""

    def __init__(
        self, question: Question, parts: Sequence[Part], counts: IntArray, run_jobs: Callable[..., dict[Job, Row]]
    ) -> None:
        self._question, self._run, self._partitions = question, run_jobs, counts.shape[1]
        self._rows = dict[Job, Row]()
        self._starts = {part: counts[max(0, part.begin_s - part.warm_up_s) :][:60].sum(axis=1).mean() for part in parts}

    def compute(self, wanted: Sequence[tuple[Sequence[Contender], Sequence[Part]]]) -> None:
        """Run contenders on parts, all in one pool of processes, in this order. `rows` then has them at once."""
        self._rows |= self._run([job for some, parts in wanted for job in self._jobs(some, parts)])

    def rows(self, contenders: Sequence[Contender], parts: Sequence[Part]) -> dict[str, list[list[Row]]]:
        """Return for each contender, by label, the rows of the parts for each spacing."""
        if any(job not in self._rows for job in self._jobs(contenders, parts)):
            self.compute([(contenders, parts)])
        found = iter(self._jobs(contenders, parts))
        spacings = self._question.spacings
        return {one.label: [[self._rows[next(found)] for _ in parts] for _ in spacings] for one in contenders}

    def _jobs(self, contenders: Sequence[Contender], parts: Sequence[Part]) -> list[Job]:
        spacings = self._question.spacings
        return [self._job(one, part, spacing) for one in contenders for spacing in spacings for part in parts]

    def cheapest(self, contenders: Sequence[Contender], parts: Sequence[Part]) -> Contender | None:
        """Return the cheapest contender that meets the SLO, else the one with the most events in time."""
        rows, ranked = self.rows(contenders, parts), []
        for contender in contenders:
            if not failures(rows[contender.label]):
                blocks = block_table(rows[contender.label])
                share, spent = share_in_time(blocks), float(blocks[:, 2].sum())
                met = share >= self._question.percentile
                ranked.append(((not met, spent if met else -share), contender))
        return min(ranked, key=lambda pair: pair[0])[1] if ranked else None

    def _job(self, contender: Contender, part: Part, spacing: Spacing) -> Job:
        question = self._question
        capacity = 1 / question.service_time_s
        needed = max(1, min(question.most, ceil(self._starts[part] / capacity)))
        fixed = min(fixed_count(contender.policy), self._partitions)
        changes = {
            "load.trace": str(part.trace or ""),
            "load.spacing": spacing.value,
            "payment.partitions": self._partitions,
            "autoscaler.max_replicas": max(question.most, fixed),
        }
        limits = changes | dict(question.set) | contender.set
        if not any(word in key for key in limits for word in TIMED):  # all other decisions change nothing
            every_s = 60.0 if fixed else KedaHpaSettings.sync_s if contender.policy == "keda-hpa" else 1.0
            changes["autoscaler.decision_interval_s"] = every_s
        needed = min(needed, replica_limit(limits, "max_replicas", 0) or needed)  # 0: no limit
        needed = max(needed, replica_limit(limits, "min_replicas", 1))
        initial = {"autoscaler.initial_replicas": fixed or needed}
        settings = sorted_changes(changes | initial, question.set, contender.set)
        return Job(scenario=BASE, policy=contender.policy, changes=settings, how=part.how)


def failures(rows: Sequence[Sequence[Row]]) -> list[str]:
    """Return why runs failed."""
    return [row[FAILED] for some in rows for row in some if FAILED in row]


def block_table(rows: Sequence[Sequence[Row]]) -> Floats:
    """Return events, late events and replica-seconds of each block, summed over the spacings: shape (blocks, 3)."""
    tables = [np.concatenate([[row["events"], row["late"], row["replica_s"]] for row in some], axis=1) for some in rows]
    return np.asarray(sum(tables), dtype=np.float64).T


def share_in_time(blocks: Floats) -> float:
    """Return the share of events in time; 1 without events."""
    events, late, _ = blocks.sum(axis=0)
    return float(1 - late / events) if events else 1.0
