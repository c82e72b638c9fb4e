"""Replicas that do not report: which are silent, and which of them is hung and replaced."""

from collections.abc import Callable
from typing import Final

from autoscaler.live.loads import LoadReader
from autoscaler.live.problems import first_few
from autoscaler.live.progress_reader import STALE_AFTER_S, ProgressReader
from autoscaler.live.replicas import ReplicaScaler
from contracts.plan import PlanRecord

HUNG_AFTER_S: Final = 15.0
"""Silence after which a replica counts as hung and is replaced, if other replicas report and the brokers answer.
Longer than the session timeout (6 s): the group has given its partitions away by then."""


class Silence:
    """Watches the age of the ready replicas' reports, and replaces hung replicas."""

    def __init__(
        self,
        scaler: ReplicaScaler,
        reports: ProgressReader,
        loads: LoadReader,
        *,
        report_problem: Callable[..., None],
        clock: Callable[[], float],
    ) -> None:
        self._scaler, self._reports, self._loads = scaler, reports, loads
        self._report_problem, self._clock = report_problem, clock
        self._created_s = self._blind_s = clock()
        """Creation, and last time at which a broker did not answer or too many replicas were silent (by `clock`)."""
        self.ages_s: dict[str, float] = {}
        """Ready replica without a recent report → age of its last report, seconds."""
        self._replacing = ""

    @property
    def is_of_most(self) -> bool:
        """Whether reports are probably lost on the way: most replicas are silent, or the only replica is."""
        return 2 * len(self.ages_s) + self._scaler.overdue > len(self._scaler.ready)

    def note_outage(self) -> None:
        """Record that a broker did not answer, so replicas may be silent for that reason."""
        self._blind_s = self._clock()

    def observe(self) -> None:
        """Find the silent replicas. Report them, and the problems of the others."""
        ready = self._scaler.ready
        ages_s = {name: min(self._reports.age_s(name), self._clock() - self._created_s) for name in ready}
        self.ages_s = {name: age_s for name, age_s in ages_s.items() if age_s > STALE_AFTER_S}
        if self.is_of_most:
            self.note_outage()
        listed = first_few(self.ages_s, ", ")
        consequence = "; too many are silent to replace one as hung" if self.is_of_most else ""
        silent = f"no report for {STALE_AFTER_S:g} s from {listed} of {len(ready)} replicas{consequence}"
        self._report_problem("reports", silent if listed else self._reports.unreadable)
        reports = [self._reports.newest(name) for name in ready if name not in self.ages_s]
        problems = [f"{report.replica}: {problem}" for report in reports if report for problem in report.problems]
        self._report_problem("replicas", first_few(problems, "; "))

    def replace_hung(self, in_force: PlanRecord | None) -> None:
        """Replace at most one hung replica at a time, none that may be serving, and none while most are silent."""
        ready = self._scaler.ready
        if self._replacing and (self._replacing not in self._scaler.requested or self._replacing in ready):
            self._replacing = ""
        hung = [name for name, age_s in self.ages_s.items() if age_s > HUNG_AFTER_S]
        few_silent = len(self.ages_s) == 1 or 2 * len(self.ages_s) < len(ready)
        blind = self._clock() - self._blind_s < HUNG_AFTER_S
        if not hung or not few_silent or blind or self._replacing or self.is_of_most:
            return
        name = max(hung, key=self.ages_s.__getitem__)
        if not self._serves(name, in_force):
            self._replacing = name
            self._scaler.kill(name, f"hung: no report for {self.ages_s[name]:.0f} s and no commits")

    def _serves(self, name: str, in_force: PlanRecord | None) -> bool:
        """Return whether offsets advance in partitions that only `name` may own: then it serves without reporting."""
        if in_force is None or in_force.assignment is None:
            return False
        reports = (self._reports.newest(other) for other in self._scaler.ready if other not in self.ages_s)
        others = {partition for report in reports if report is not None for partition in report.partitions}
        own = {part for part, owner in in_force.assignment.items() if owner == name} - others
        return any(self._loads.has_advanced(partition, HUNG_AFTER_S) for partition in own)
