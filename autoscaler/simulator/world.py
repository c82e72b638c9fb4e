"""Puts a simulated world together and turns it: the engine up to each timed action, then the action."""

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.arrivals import Arrivals, Feed, Workload
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.deliveries import PlanDelivery, Share, make_delivery
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.group import SimulatedGroup
from autoscaler.simulator.handovers import Handover
from autoscaler.simulator.outcome import Outcomes
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.settings import SimulationSettings
from autoscaler.simulator.sight import Sight
from contracts.delivery import Delivery


class World:
    """Everything but the controller. Time is that of the engine; under share a pool takes its place.

    keep: off, only latencies are kept, and no record of plans, handovers and replicas.
    """

    def __init__(self, workload: Workload, settings: SimulationSettings, *, keep: bool = True) -> None:
        service = ServiceTimes(settings.service, settings.seed)
        self.outcomes = Outcomes(keep=keep)
        self.agenda = Agenda()
        self.handovers: list[Handover] = []
        """Those that are complete, in order of time."""
        target_us = round(settings.latency_target_s * 1e6)
        self.engine: Engine | Pool
        delivery: PlanDelivery
        if settings.delivery.delivery is Delivery.SHARE:
            pool = Pool(
                workload.partitions, service, whole_batches=settings.delivery.whole_batches, target_us=target_us
            )
            self.engine, delivery = pool, Share(pool, self.agenda)
        else:
            engine = Engine(workload.partitions, service, poll_events=settings.poll_events, target_us=target_us)
            completed = self.handovers.append if keep else _forget
            self.engine = engine
            delivery = make_delivery(settings.delivery, engine, self.agenda, completed, settings.seed)
        look_back_us = round((settings.decision_interval_s + settings.observation_delay_s) * 1e6)
        self._feed = Feed(workload, self._take_in, look_back_us=look_back_us)
        self._sight = Sight(self.engine, self._feed.slots, settings)
        self.group = SimulatedGroup(
            self.engine, self.agenda, delivery, self._sight, settings, partitions=workload.partitions, keep=keep
        )
        self._delay_us = round(settings.observation_delay_s * 1e6)
        self._ended_us = round(workload.duration_s * 1e6)

    def advance(self, until_us: int) -> None:
        """Let everything happen that is due at or before `until_us`, and serve what starts before."""
        while (due_us := self.agenda.next_us()) is not None and due_us <= until_us:
            self._serve(due_us)
            self.agenda.pop()()
            self.group.release()
        self._serve(until_us)

    def finish_changes(self) -> None:
        """Go to the end of the workload, and on until everything has happened that has been set going."""
        self.advance(max(self.engine.now_us, self._ended_us))
        while (due_us := self.agenda.next_us()) is not None:
            self.advance(due_us)

    def look_for(self, tick_us: int, *, first: bool = False) -> None:
        """Read the offsets in time for a tick that sees them late. first: it is the earliest."""
        look_us = tick_us - self._delay_us
        self._sight.expect(look_us, self.agenda, first=first)
        if self._delay_us:
            self.agenda.at(max(self.engine.now_us, look_us), self._sight.look)

    def drain(self) -> int:
        """Serve all that is left; return when the last event was finished, µs."""
        drained_us = self.engine.drain()
        self.outcomes.add(self.engine.take())
        return drained_us

    def _serve(self, until_us: int) -> None:
        self._feed.until(until_us)
        if until_us > self.engine.now_us:
            self.engine.advance(until_us)

    def _take_in(self, arrivals: Arrivals) -> None:
        self.outcomes.add(self.engine.take())
        self.engine.feed(arrivals)
        self.outcomes.fed(arrivals)


def _forget(_: Handover) -> None:
    """Take no note."""
