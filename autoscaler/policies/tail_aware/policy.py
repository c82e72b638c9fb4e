"""The policy: chooses the plan whose replicas and late events together have the lowest cost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, repeat
from math import ceil, exp, inf
from typing import Final

import numpy as np

from autoscaler.model import Alternative, Decision, GroupObservation, Plan, RecentArrivals
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import change, no_change, number
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory, Shape, uncommitted_left_out
from autoscaler.policies.tail_aware.forecast import Demand
from autoscaler.policies.tail_aware.limits import Limit
from autoscaler.policies.tail_aware.memory import Budget, Handovers, Reports, ScaleDownDelay, ServiceRateCorrection
from autoscaler.policies.tail_aware.prediction import late_of, late_until, predicted, unforeseen
from autoscaler.policies.tail_aware.proposals import needed, proposals
from autoscaler.policies.tail_aware.situation import Candidate, Floats, Ints, Situation, horizon
from autoscaler.policies.tail_aware.starts import PeakFloor, ReplicaTracker, StartUpTimes
from contracts.settings import Settings, setting

MIN_SLOTS_BETWEEN_DECISIONS: Final = 2
"""Minimum slots between a tick and a decision before the next one: in one slot, a stream looks like a burst."""
MIN_SLOTS_BETWEEN_DECISIONS_IN_BURSTS: Final = 1
"""The same if events arrive in bursts."""
MAX_STREAM_SLOT_SHARE: Final = 0.6
"""Maximum share of the arrivals in one slot for which they count as a stream."""
MAX_CELLS: Final = 200_000
"""Slots × partitions of the horizon of a start: 200 s of 100 partitions, 2 s of 10,000; at most some tenths of a second
for a decision."""
MIN_URGENT_EVENTS: Final = 1.0
"""Late events beyond the predicted ones for which a decision is urgent."""


@dataclass(frozen=True, kw_only=True)
class TailAwareSettings(Settings):
    """Prices are in seconds of a replica."""

    price: float = setting(0.05, "share", above=0)
    """Price of late events: all events that may be late (1 − q) cost this share of the work. Sixteen times as much at
    most if the SLO is not met."""
    start_price_s: float = setting(1.0, "s", least=0)
    """Cost of starting a replica, in replica-seconds."""
    patience_s: float = setting(8.0, "s", least=0)
    """Longest scale-down delay: fewer replicas must suffice this long. Learned from stops that were soon followed by a
    start."""
    keep_s: float = setting(300.0, "s", least=0)
    """Longest time that replicas are kept after a peak because a restart would make events late. Learned from past
    starts."""
    move_price_s: float = setting(0.02, "s", least=0)
    """Cost of moving a partition, in replica-seconds. It prevents rebalances for gains within the forecast's noise."""
    lead_factor: float = setting(6.5, least=0)
    """Handovers may begin up to lead_factor·t_r early, when fewer events are affected."""


class TailAware:
    """Predicts the late events of several plans and chooses the one with the lowest cost.

    Count and assignment are decided together (docs/explanation/the-policy.md). Each tick: learn how events arrive and
    how many will; think of plans; predict for each which events would be late, those that wait already and those that
    handovers delay included; take the cheapest.
    """

    name = "tail-aware"

    def __init__(self, settings: PolicySettings, options: TailAwareSettings | None = None) -> None:
        self.settings = settings
        self.options = options or TailAwareSettings()
        self._history = ArrivalHistory()
        self._demand = Demand()
        self._budget = Budget(settings.percentile)
        self._rate_correction = ServiceRateCorrection(self._budget.allowed_share)
        self._limit = Limit()
        self._handovers = Handovers()
        self._replica_tracker = ReplicaTracker()
        self._startups = StartUpTimes()
        self._peak_floor = PeakFloor(self.options.keep_s)
        self._scale_down_delay = ScaleDownDelay(self.options.patience_s)
        self._reports = Reports()
        self._late_upstream = 0.0
        self._late_meanwhile = 0.0
        """Late events while a change is postponed."""
        self.early = False
        """Whether the last decision was before its tick, at most once in an interval."""
        self._was_urgent = False  # a short interval does not prove it: the last tick may have been late
        self._before: tuple[Situation, Candidate] | None = None
        """The previous tick and its plan."""
        self._earlier: tuple[Situation, Candidate, Floats] | None = None
        """The tick before that, its plan, and the arrivals in between."""
        self._numbers: dict[str, int] = {}
        """Number of each replica at the previous tick, by name."""
        self.late = 0.0
        """Late events of the last tick, including upstream."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the cheapest plan."""
        self._reports.record_reports(observation)
        self._late_upstream += observation.late_upstream
        if not observation.partitions:
            return no_change(observation, "the topic has no partitions")
        urgent, self._was_urgent = self._was_urgent, False
        if urgent and self._before is not None and self._history.early(observation):
            return self._decide_early(observation, *self._before)
        now = self._forecast(observation)
        kept = self._kept(observation, now)
        found = _weighed_plans(now, kept)
        chosen = self._choose(observation, now, found, kept)
        self._book(now, chosen, observation)
        return self._decision(observation, now, chosen, found)

    def urgent(self, arrived: RecentArrivals) -> bool:
        """Return whether more events since the last tick would be late than predicted.

        At most once between two ticks, and not close to one.
        """
        if self._before is None or self.early:
            return False
        then, chosen = self._before
        slots, whole = len(arrived.counts), len(self._history.last)
        bursts = self._history.in_bursts(MAX_STREAM_SLOT_SHARE)
        apart = MIN_SLOTS_BETWEEN_DECISIONS_IN_BURSTS if bursts else MIN_SLOTS_BETWEEN_DECISIONS
        if not apart <= slots <= whole - apart or arrived.counts.shape[1] != len(then.owners):
            return False
        late = late_of(then, chosen, np.asarray(arrived.counts, np.float64))
        self._was_urgent = late > chosen.late + MIN_URGENT_EVENTS
        return self._was_urgent

    def _decide_early(self, observation: GroupObservation, then: Situation, before: Candidate) -> Decision:
        """Decide before the tick, from the arrivals since the last one. Nothing is learned, and no replica stops."""
        self.early = True
        begun, numbers = self._history.begun, self._numbers
        growth = _growth(begun, len(self._history.last), float(then.sizes.sum()))
        owners, serving = (
            _places(observation, by) for by in (observation.assignment, self._replica_tracker.now(observation))
        )
        _, rates = self._rates(observation)
        now = replace(
            then,
            waiting=self._waiting(observation, serving, rates),
            # the intervals to come are as those that were: what has come of this one comes in the next one again
            expected=np.roll(growth * then.expected, -len(begun), axis=1),
            surprises=np.roll(growth * then.surprises, -len(begun), axis=1),
            sizes=np.maximum(growth * then.sizes, begun.sum(axis=0)),
            owners=owners,
            serving=serving,
            starting_s=self._startups.remaining_s(observation, then.start_s),
            in_handover_s=self._handovers.remaining_s(observation),
            rates=rates,
            numbered_rates=np.concatenate([rates, then.numbered_rates[len(then.rates) :]]),
        )
        requested = len(now.rates)
        found = [one for one in _weighed_plans(now) if len(one.replicas) >= requested]
        if not found:
            return no_change(observation, "no change before the next tick would help")
        chosen = min(found, key=_cost)
        self._scale_down_delay.note(observation.at_s, requested, len(chosen.replicas))
        decision = self._decision(observation, now, chosen, found)
        self._numbers = numbers  # the interval is compared by those of its tick
        return decision

    def _book(self, now: Situation, chosen: Candidate, observation: GroupObservation) -> None:
        """Book the late ones of the last interval: as replicas report them, of each that does not by a replay."""
        arrived, before = self._history.last, self._before
        if before is not None and len(before[0].owners) != len(now.owners):
            before = None
        if before is not None:
            self._compare(observation, before, arrived)
        self._earlier = None if before is None else (*before, arrived)
        self._before = now, chosen
        replayed = self._reports.replayed(observation, self._before, before, arrived, self._numbers)
        late = self._reports.book(replayed)
        self._peak_floor.book(late, self._startups)
        self._late_meanwhile += late
        self.late = late + self._late_upstream
        self._late_upstream = 0
        self._budget.book(self.late, now.arrived)

    def _compare(self, observation: GroupObservation, before: tuple[Situation, Candidate], arrived: Floats) -> None:
        """Learn from what replicas report beyond what the interval explains."""
        self._rate_correction.keep(observation.replica_names)
        if self._limit.rate < inf:
            # the limit, not the replicas, makes events late
            self._rate_correction = ServiceRateCorrection(self._budget.allowed_share)
            return
        if self._startups.quiet < 2:
            return  # the late events waited for a start, whichever replica has them now
        explained, owners = late_until(*before, arrived), before[1].owners
        known = observation.commit_age_s == 0  # else what waits is not known well enough to prove anything
        if known and self._earlier is not None and _unchanged(*self._earlier[:2], *before):
            explained -= unforeseen(self._earlier, *before, arrived)
        got = np.bincount(owners, arrived.sum(axis=0), minlength=len(explained))
        for replica in observation.replicas:
            number = self._numbers.get(replica.name)
            late = self._reports.reported_late.get(replica.name)
            if late is not None and number is not None and number < len(explained):
                self._rate_correction.learn(replica.name, late, float(explained[number]), float(got[number]))

    def _forecast(self, observation: GroupObservation) -> Situation:
        """Learn from the tick; return what waits, what is expected, and what plans are compared by."""
        self.early = False
        self._startups.observe(observation)
        counts = self._history.observe(observation)
        history, options = self._history, self.options
        ahead = horizon(
            interval_s=history.interval_s,
            reach_s=max(self.settings.latency_target_s, observation.rebalance_time_s * (1 + self.options.lead_factor)),
            startup_s=self._startup_s(observation),
            most=MAX_CELLS // history.last.size,
        )
        self._demand.observe(history.usual, history.surprising, lead=ahead.intervals[-1])
        target_s = max(history.slot_s, self.settings.latency_target_s - observation.overhead_s)
        demand = [self._demand.ahead_with_inflow(observation.inflow, intervals) for intervals in ahead.intervals]
        shapes = history.shapes
        surprises = self._demand.surprises()
        slots = ceil(ahead.until_s / history.slot_s - 1e-9)

        def arrivals_of(scenario: Iterable[Shape], times: float) -> Floats:
            # a forecast error concerns the next interval: it adds nothing to later ones with higher forecasts
            each = zip(scenario, demand, strict=False)
            parts = [one.factor * one.own * np.maximum(events, times * demand[0]) for one, events in each]
            return np.concatenate(parts)[:slots]

        # keep the order of the intervals: to repeat one with two bursts would double the events
        scenarios = [cycle(shapes[first:] + shapes[:first]) for first in range(len(shapes))]
        owners, serving = (
            _places(observation, by) for by in (observation.assignment, self._replica_tracker.now(observation))
        )
        self._limit.observe(observation, serving, _lag(observation), counts, _observed_rates(observation))
        typical_rate, rates = self._rates(observation)
        return Situation(
            arrived=float(counts.sum()),
            waiting=self._waiting(observation, serving, rates),
            expected=np.array([arrivals_of(scenario, 0.0) for scenario in scenarios]),
            chances=np.array([one.weight for one in shapes]),
            surprises=np.array([arrivals_of(repeat(one.shape), one.factor) for one in surprises]).reshape(
                -1, slots, len(owners)
            ),
            surprise_chances=np.array([one.chance for one in surprises]),
            headroom=np.array([one.factor for one in surprises]),
            saved_s=history.interval_s + observation.rebalance_time_s + ahead.start_s + 0.5 * target_s,
            paid_s=ahead.near_s,
            variance=self._demand.variance(),
            sizes=self._limit.served_of(np.maximum(demand[0], demand[-1]), history.interval_s),
            owners=owners,
            serving=serving,
            starting_s=ahead.seen_s(self._startups.remaining_s(observation, ahead.startup_s)),
            in_handover_s=self._handovers.remaining_s(observation),
            rates=rates,
            numbered_rates=np.concatenate([rates, np.full(len(owners), typical_rate)]),
            typical_rate=typical_rate,
            capacity=history.capacity(typical_rate, target_s),
            limit=self._limit.rate,
            slot_s=history.slot_s,
            begin_s=history.begin_s,
            target_s=target_s,
            pause_s=observation.rebalance_time_s,
            stops_all=observation.stops_all,
            start_s=ahead.start_s,
            late_price_s=options.price / (observation.service_rate * self._budget.allowed_share),
            scarcity=self._budget.scarcity,
            start_price_s=options.start_price_s,
            move_price_s=options.move_price_s,
            tail_slots=len(history.last),
        )

    def _rates(self, observation: GroupObservation) -> tuple[float, Floats]:
        least, slower = self._limit.least_rate, self._rate_correction.slower
        each = np.maximum(_observed_rates(observation), least) * [slower(one.name) for one in observation.replicas]
        return max(observation.service_rate, least) * exp(-self._rate_correction.typical), each

    def _waiting(self, observation: GroupObservation, owners: Ints, rates: Floats) -> Floats:
        left = uncommitted_left_out(_lag(observation), owners, rates * observation.commit_age_s)
        return self._history.waiting(left, self.settings.latency_target_s)

    def _startup_s(self, observation: GroupObservation) -> float:
        return self._startups.typical_s(observation.startup_s, self._history.interval_s)

    def _kept(self, observation: GroupObservation, now: Situation) -> int:
        """Return how many replicas recent peaks need; 0 if a start is fast enough."""
        startup_s, history = self._startup_s(observation), self._history
        if startup_s <= now.target_s:
            return 0
        usual = history.usual.sum(axis=0)
        served = self._limit.served_of(usual, history.interval_s)
        let_through = served.sum() / max(1.0, usual.sum())
        self._peak_floor.observe(
            observation.at_s,
            let_through * history.last,
            history.slot_s,
            startup_s=startup_s,
            rate=now.typical_rate,
            target_s=now.target_s,
            most=needed(replace(now, sizes=served), 0),
        )
        return self._peak_floor.least(observation.at_s, now.late_price_s * self._budget.scarcity())

    def _choose(self, observation: GroupObservation, now: Situation, found: list[Candidate], kept: int) -> Candidate:
        """Return the cheapest; with fewer replicas only where those can go on so, and fewer have sufficed for a while.

        A replica may be saved by living on the slack of W, but is not stopped for it: it would come back at once. Where
        starts take time, what fell of late may come back as fast: replicas that it would need sooner are not stopped.
        """
        requested = len(now.rates)
        allowed = [one for one in found if one.lasts or len(one.replicas) >= requested] or found
        best = min(allowed, key=_cost)
        reserve = needed(now, self._demand.fall()) if now.start_s > 0 else 0
        wanted = max(len(best.replicas), reserve)
        least = min(requested, max(kept, self._scale_down_delay.least(observation.at_s, wanted)))
        enough = [one for one in allowed if len(one.replicas) >= least]
        chosen = self._overdue_change(min(enough, key=_cost, default=best), enough)
        self._scale_down_delay.note(observation.at_s, requested, len(chosen.replicas))
        return chosen

    def _overdue_change(self, chosen: Candidate, others: list[Candidate]) -> Candidate:
        """Stop postponing a disruptive change once waiting has cost as many late events as the change would.

        Else a change that makes more events late within the horizon than no change, such as a stop of the whole group,
        would be postponed at every tick (ski rental, as in `PeakFloor`).
        """
        change = min((one for one in others if one.lasts), key=_cost, default=chosen)
        if chosen.lasts or chosen.moved or change.late <= chosen.late:
            self._late_meanwhile = 0.0
            return chosen
        return change if self._late_meanwhile >= change.late else chosen

    def _decision(
        self, observation: GroupObservation, now: Situation, chosen: Candidate, found: list[Candidate]
    ) -> Decision:
        names = dict(enumerate(observation.replica_names))
        fresh = fresh_names(self.settings.replica_prefix, {*names.values(), *observation.assignment.values()})
        names |= {replica: next(fresh) for replica in chosen.replicas if replica >= len(now.rates)}
        self._numbers = {name: number for number, name in names.items()}
        partitions = [load.partition for load in observation.partitions]
        owners = dict(zip(partitions, map(names.__getitem__, chosen.owners.tolist()), strict=True))
        moved = np.flatnonzero(chosen.owners != now.owners).tolist()
        self._handovers.begin(observation, [partitions[place] for place in moved])
        plan = Plan(tuple(names[one] for one in chosen.replicas), owners)
        decision = change(observation, plan, _why(now, chosen, found))
        return replace(decision, alternatives=tuple(_weighed(now, chosen, found)))


def _unchanged(earlier: Situation, its_choice: Candidate, then: Situation, chosen: Candidate) -> bool:
    """Return whether nothing started or moved during two intervals.

    Else the waiting events may have waited for a start or a handover that took longer than predicted.
    """
    after = (its_choice.owners, then.serving, then.owners, chosen.owners)
    return all(np.array_equal(earlier.serving, owners) for owners in after)


def _growth(begun: Floats, whole: int, predicted_events: float) -> float:
    """Return the arrivals of an even stream as a multiple of the predicted ones, at least 1; 1 for bursts.

    begun: events of the first slots of `whole`, shape (slots, partitions). predicted_events: of all slots.
    """
    by_slot = begun.sum(axis=1)
    came = float(by_slot.sum())
    if predicted_events <= 0 or by_slot.max() > MAX_STREAM_SLOT_SHARE * came:
        return 1.0
    return max(1.0, came * whole / len(begun) / predicted_events)


def _places(observation: GroupObservation, names: Mapping[int, str]) -> Ints:
    """Return the replica of each partition by its place in the observation, −1 for none. names: by partition."""
    index = {name: number for number, name in enumerate(observation.replica_names)}
    return np.array([index.get(names.get(load.partition, ""), -1) for load in observation.partitions], np.int64)


def _lag(observation: GroupObservation) -> Floats:
    return np.array([float(load.lag) for load in observation.partitions])


def _observed_rates(observation: GroupObservation) -> Floats:
    return np.array([one.service_rate or observation.service_rate for one in observation.replicas])


def _weighed_plans(now: Situation, kept: int = 0) -> list[Candidate]:
    different = {(plan.owners.tobytes(), plan.replicas): plan for plan in proposals(now, kept)}
    return [predicted(now, plan) for plan in different.values()]


def _cost(one: Candidate) -> float:
    return one.cost


def _weighed(now: Situation, chosen: Candidate, found: list[Candidate]) -> Iterator[Alternative]:
    cheapest: dict[int, Candidate] = {}
    for one in sorted(found, key=_cost):
        cheapest.setdefault(len(one.replicas), one)
    cheapest.pop(len(chosen.replicas), None)
    for one in (chosen, *cheapest.values()):
        yield Alternative(len(one.replicas), one.moved, _in_sla(now, one), one.cost)


def _in_sla(now: Situation, one: Candidate) -> float:
    events = max(1.0, float(now.waiting.sum() + now.expected[0].sum()))
    return min(1.0, max(0.0, 1 - one.late / events))


def _why(now: Situation, chosen: Candidate, found: list[Candidate]) -> str:
    text = f"{number(float(now.sizes.sum()))} events expected per interval; {_describe(now, chosen)}"
    staying = next((one for one in found if not one.moved and len(one.replicas) == len(now.rates)), None)
    if staying is not None and staying is not chosen and (chosen.moved or len(chosen.replicas) != len(now.rates)):
        return f"{text}; without a change: {_describe(now, staying).removeprefix('with ')}"
    others = [one for one in found if len(one.replicas) != len(chosen.replicas)]
    return f"{text}, {_describe(now, min(others, key=_cost))}" if others else text


def _describe(now: Situation, one: Candidate) -> str:
    count = len(one.replicas)
    replicas = f"{count} replica" + "s" * (count != 1)
    return f"with {replicas} {100 * _in_sla(now, one):.4g} % in time at cost {number(one.cost)}"
