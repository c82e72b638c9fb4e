"""From what is wanted to what is in force: writes each plan as soon as it can be carried out, and tells the journal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from autoscaler.live.plan_log import PlanLog, PlanNotWrittenError
from autoscaler.live.processes import ProcessScaler
from autoscaler.live.realisation import REPAIR, Intent, feasible, moved, says, why_partial
from contracts.journal import JournalEntry, PlanWritten
from contracts.plan import PlanRecord

_WRITE_AGAIN_S: Final = 0.5
"""Pause before a plan that the brokers did not take is written again."""


class Publisher:
    """The intent, and its way into the plan log.

    grace_s: for so long the partitions of a replica that died wait for its return; then they go to the others.
    """

    def __init__(
        self,
        log: PlanLog,
        scaler: ProcessScaler,
        record: Callable[[JournalEntry], None],
        clock: Callable[[], float],
        *,
        grace_s: float = 0.0,
    ) -> None:
        self._log = log
        self._scaler = scaler
        self._record = record
        self._clock = clock
        self._grace_s = grace_s
        self._write_after_s = 0.0
        self.intent: Intent | None = None
        """What the group is on its way to; equal to the plan in force once it has got there."""

    @property
    def in_force(self) -> PlanRecord | None:
        """The newest plan on the plan topic."""
        return self._log.newest

    def publish_if_due(self, epoch_seen: int) -> None:
        """Write the wanted plan once all its replicas could join; if one of them is absent, what is feasible.

        epoch_seen: the highest that a replica has reported; epochs grow beyond it. Raises FencedError.
        """
        intent = self.intent
        if intent is None or self._clock() < self._write_after_s:
            return
        able = {name for name in intent.plan.replicas if self._scaler.ready(name)}
        awaited = [name for name in intent.plan.replicas if self._awaited(name)] if able else []
        evictions = tuple(self._scaler.evictions)
        complete = len(able) == intent.plan.count
        urgent = bool(evictions) or any(self._scaler.absent(name) for name in intent.plan.replicas)
        plan = feasible(intent.plan, able.union(awaited)) if complete or urgent else None
        if plan is None or (not evictions and says(self.in_force, plan)):
            return
        planned = complete and not intent.carried_out
        action = intent.action if planned else REPAIR
        reason = intent.reason if planned else why_partial(intent.plan, plan.replicas, awaited, evictions)
        before = self.in_force
        self._log.stay_above(epoch_seen)
        try:
            written = self._log.write(
                plan.replicas, plan.assignment, reason, evictions, self._grace_s if awaited else 0.0
            )
        except PlanNotWrittenError:
            self._write_after_s = self._clock() + _WRITE_AGAIN_S
            return
        del self._scaler.evictions[: len(evictions)]
        self.intent = replace(intent, carried_out=intent.carried_out or complete)
        self._record(
            PlanWritten(
                at_us=written.at_us,
                epoch=written.epoch,
                action=action,
                reason=reason,
                replicas=written.replicas,
                assignment=written.assignment,
                moved=moved(None if before is None else before.assignment, written.assignment),
            )
        )

    def _awaited(self, name: str) -> bool:
        """Whether `name` was in force when it died, and its partitions still wait for it."""
        died_s = self._scaler.died_s(name)
        named = self.in_force is not None and name in self.in_force.replicas
        return named and died_s is not None and self._clock() - died_s < self._grace_s
