"""The journal of a simulated run: values are kept as they are, records are made when somebody reads them."""

from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.ports import NotReadyError
from autoscaler.records import alternatives_weighed, partitions_seen
from autoscaler.simulator.group import SimulatedGroup
from contracts.journal import TickRecord


@dataclass(frozen=True, slots=True)
class _Tick:
    at_us: int
    number: int
    epoch: int
    requested: int
    ready: int
    service_rate: float
    seen: GroupObservation | None
    decision: Decision | None
    missing: str | None = None


class SimulatedJournal:
    """Implements autoscaler.ports.Journal. keep: off, and ticks are forgotten (for runs with millions of loads)."""

    def __init__(self, group: SimulatedGroup, policy: str, *, keep: bool = True) -> None:
        self._group = group
        self._policy = policy
        self._keep = keep
        self._ticks: list[_Tick] = []
        self._number = 0

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with what it was made from."""
        self._number += 1
        if self._keep:
            self._ticks.append(
                _Tick(
                    at_us=round(observation.at_s * 1e6),
                    number=self._number,
                    epoch=self._group.epoch,
                    requested=observation.requested_replicas,
                    ready=sum(replica.ready for replica in observation.replicas),
                    service_rate=observation.service_rate,
                    seen=observation,
                    decision=decision,
                )
            )

    def record_hold(self, missing: NotReadyError) -> None:
        """Record that nothing was decided because something was unknown."""
        self._number += 1
        if self._keep:
            replicas = self._group.replicas
            self._ticks.append(
                _Tick(
                    at_us=self._group.now_us,
                    number=self._number,
                    epoch=self._group.epoch,
                    requested=len(replicas),
                    ready=sum(replica.ready for replica in replicas),
                    service_rate=self._group.service_rate,
                    seen=None,
                    decision=None,
                    missing=missing.missing,
                )
            )

    def ticks(self, started_us: int) -> Iterator[TickRecord]:
        """Yield a record for each tick that was kept. started_us: what second 0 of the run is."""
        for tick in self._ticks:
            yield TickRecord(
                at_us=started_us + tick.at_us,
                tick=tick.number,
                policy=self._policy,
                action=(Action.HOLD if tick.decision is None else tick.decision.action).value,
                reason="not everything is known" if tick.decision is None else tick.decision.reason,
                service_rate=tick.service_rate,
                partitions=() if tick.seen is None else partitions_seen(tick.seen),
                ready_replicas=tick.ready,
                requested_replicas=tick.requested,
                planned_replicas=tick.requested if tick.decision is None else tick.decision.plan.count,
                epoch=tick.epoch,
                alternatives=() if tick.decision is None else alternatives_weighed(tick.decision),
                missing=tick.missing,
            )
