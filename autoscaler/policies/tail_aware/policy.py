"""The policy: carries out each plan in a queue model, on the arrivals that may come, and chooses the cheapest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar, Final, NamedTuple

import numpy as np

from autoscaler.model import Alternative, Decision, GroupObservation, Plan, RecentArrivals
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import change, no_change, number
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory, Floats, Ints
from autoscaler.policies.tail_aware.forecast import Ensemble, Paths
from autoscaler.policies.tail_aware.memory import (
    Budget,
    Handovers,
    RecentPeaks,
    Reports,
    ServiceRateCorrection,
    StartUpTimes,
)
from autoscaler.policies.tail_aware.plans import PINNED, Plans, add_plans
from autoscaler.policies.tail_aware.queues import (
    Grid,
    Group,
    late_by_replica,
    late_of_plans,
    pooled_need,
)
from contracts.settings import Settings, Values, setting

MAX_COUNTS: Final = 6
"""Replica counts that are considered at first; fewer in groups with over 1,000 partitions."""
EAGER_LEAD: Final = 3.0
"""Factor on `lead_factor` if a rebalance stops all partitions: then it must pay off over a longer time."""


@dataclass(frozen=True, kw_only=True)
class TailAwareSettings(Settings):
    """Prices are in seconds of a replica."""

    price: float = setting(0.05, "share", above=0)
    """Price of late events. As many as the SLO allows (1 − q) cost this share of the work; more, up to sixteen times
    as much."""
    start_price_s: float = setting(1.0, "s", least=0)
    """Cost of starting a replica, in replica-seconds."""
    change_price_s: float = setting(0.1, "s", least=0)
    """Cost of a rebalance, in replica-seconds."""
    move_price_s: float = setting(0.02, "s", least=0)
    """Cost of moving a partition, in replica-seconds."""
    keep_s: float = setting(300.0, "s", least=0)
    """Longest time that replicas are kept after a peak if a start takes longer than the latency target."""
    lead_factor: float = setting(6.5, least=0)
    """Handovers may begin up to lead_factor·t_r early, when fewer events are affected."""
    REMOVED: ClassVar[Values] = {"patience_s": 8.0}


class Situation(NamedTuple):
    """The data by which plans are compared."""

    group: Group
    present: int
    """Number of present replicas."""
    waiting: Floats
    paths: Paths
    grid: Grid
    start_s: float
    """Time that a new replica needs to start."""
    paid_s: float
    """Time for which the replicas of a plan are paid."""
    interval_s: float
    least: int
    """Replicas to keep."""

    def lasts(self, owners: Ints) -> bool:
        """Return whether no replica has more events in an interval than it can serve in that time."""
        load, held = np.bincount(owners, self.paths.sizes), np.bincount(owners)
        return bool((load <= self.group.rates[: len(load)] * self.interval_s)[held > 1].all())


class Candidate(NamedTuple):
    """A plan with its prediction."""

    owners: Ints
    replicas: tuple[int, ...]
    late: float
    """Expected late events."""
    late_cost: float
    cost: float
    moved: int


class TailAware:
    """Predicts the late events of several plans and chooses the one with the lowest cost."""

    name = "tail-aware"

    def __init__(self, settings: PolicySettings, options: TailAwareSettings | None = None) -> None:
        self.settings, self.options = settings, options or TailAwareSettings()
        self._history = ArrivalHistory()
        self._ensemble = Ensemble(self._history)
        self._budget = Budget(settings.percentile)
        self._correction = ServiceRateCorrection(self._budget.allowed_share)
        self._startups = StartUpTimes()
        self._handovers = Handovers()
        self._reports = Reports()
        self._peaks = RecentPeaks()
        self._before: tuple[Situation, Candidate] | None = None
        """The last tick and its plan."""
        self._numbers: dict[str, int] = {}
        """Number of each replica at the last tick, by name."""
        self._modelled: dict[str, float] = {}
        """Late events of the last interval by replica, according to the queue model."""
        self._late_upstream = 0.0
        self._urgent = False
        self.early = False
        """Whether the last decision was made between two ticks. There is at most one in an interval."""
        self.late = 0.0
        """Late events of the last interval, including upstream."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the cheapest plan."""
        self._reports.add(observation)
        self._late_upstream += observation.late_upstream
        urgent, self._urgent = self._urgent, False
        if not observation.partitions:
            return no_change(observation, "the topic has no partitions")
        if urgent and self._before is not None and self._history.begin(observation.recent):
            self.early = True
            if len(self._history.begun) >= len(self._history.last):
                return no_change(observation, "the next tick is due")
            now = self._meanwhile(observation, self._before[0])
        else:
            self.early = False
            now = self._at_tick(observation)
        found = self._compare(now)
        least = now.present if self.early else min(now.present, now.least)
        allowed = [
            one for one in found if len(one.replicas) >= now.present or (not self.early and now.lasts(one.owners))
        ]
        if not allowed:
            return no_change(observation, "no change before the next tick would help")
        chosen = min([one for one in allowed if len(one.replicas) >= least] or allowed, key=_cost)
        if not self.early:
            self._before = now, chosen
        return self._decision(observation, now, chosen, found)

    def urgent(self, arrived: RecentArrivals) -> bool:
        """Return whether more events since the last tick would be late than predicted. At most once between ticks."""
        if self._before is None or self.early:
            return False
        now, chosen = self._before
        slots = len(arrived.counts)
        least = 1 if self._history.in_bursts else 2  # one slot of a stream looks like a burst
        if not least <= slots <= len(self._history.last) - least or not arrived.counts.any():
            return False
        if arrived.counts.shape[1] != len(now.group.owners):
            return False
        counts = np.asarray(arrived.counts, np.float64)
        late = _replayed(now, chosen, np.stack((counts, np.zeros_like(counts))))[1].sum(axis=1)
        self._urgent = bool(late[0] - late[1] > chosen.late + 1.0)
        return self._urgent

    def _at_tick(self, observation: GroupObservation) -> Situation:
        """Learn from the last interval; return the situation."""
        history, budget, options = self._history, self._budget, self.options
        self._startups.observe(observation)
        counts = history.observe(observation)
        if self._before is not None and len(self._before[0].group.owners) == len(counts):
            self._learn(observation, *self._before)
        self.late = self._reports.book(self._modelled) + self._late_upstream
        self._late_upstream = 0.0
        budget.book(self.late, float(counts.sum()))
        start_s, pause_s = self._startups.typical_s(observation.startup_s), observation.rebalance_time_s
        interval_s, slot_s = history.interval_s, history.slot_s
        target_s = max(slot_s, self.settings.latency_target_s - observation.overhead_s)
        lead_s = pause_s * (1 + options.lead_factor * (EAGER_LEAD if observation.stops_all else 1))
        near = max(1, ceil(max(target_s, lead_s) / interval_s - 1e-9))
        starting = max(1, ceil(start_s / interval_s - 1e-9))  # intervals
        horizon = max(near, starting + 1) if start_s > 0 else near
        self._ensemble.observe(counts, horizon, observation.inflow)
        group, waiting = self._group(observation)
        rate, present, least = float(group.rates[-1]), len(observation.replicas), 0
        if start_s > target_s:  # until a surge is observed and a new replica has started, the present ones serve alone
            if not self._numbers:
                self._peaks.observe(observation.at_s, 0.0, observation.requested_replicas)
            newest = history.intervals[-starting - 2 :].sum(axis=2).reshape(1, -1)
            need = pooled_need(newest, 0.0, rate, slot_s, target_s, len(counts))
            self._peaks.observe(observation.at_s, float(counts.sum()), int(need[0]))
            # then a replica that is kept has cost as much as the events that would be late while a new one starts
            keep_s = start_s * options.price / budget.allowed_share * float(budget.factor(np.zeros(1))[0])
            least = self._peaks.least(starting + 1, min(options.keep_s, keep_s))
        return Situation(
            group=group,
            present=present,
            waiting=waiting,
            paths=self._ensemble.paths(horizon, float(group.rates[:present].sum()) or rate),
            grid=Grid(slot_s, history.begin_s, target_s, interval_s + pause_s + start_s + 0.5 * target_s, start_s > 0),
            start_s=start_s,
            paid_s=near * interval_s,
            interval_s=interval_s,
            least=least,
        )

    def _meanwhile(self, observation: GroupObservation, then: Situation) -> Situation:
        """Return the situation between two ticks: that of the last tick, with the arrivals since then."""
        begun, growth = self._history.begun, 1.0
        by_slot, came = begun.sum(axis=1), float(begun.sum())
        predicted = float(then.paths.sizes.sum())
        if predicted > 0 and by_slot.max() <= 0.6 * came:  # in a burst, the beginning says nothing of the rest
            growth = max(1.0, came * len(self._history.last) / len(begun) / predicted)
        group, waiting = self._group(observation)
        events = growth * np.roll(then.paths.events, -len(begun), axis=1)
        paths = then.paths._replace(events=events, sizes=growth * then.paths.sizes)
        return then._replace(group=group, waiting=waiting, paths=paths, present=len(observation.replicas))

    def _group(self, observation: GroupObservation) -> tuple[Group, Floats]:
        """Return the group with numbered replicas, new ones included, and the waiting events."""
        replicas, startups = observation.replicas, self._startups
        start_s = startups.typical_s(observation.startup_s)
        index = {name: place for place, name in enumerate(observation.replica_names)}
        owners, serving = (
            np.array([index.get(names.get(load.partition, ""), -1) for load in observation.partitions], np.int64)
            for names in (observation.assignment, startups.serving(observation))
        )
        self._correction.keep(observation.replica_names)
        new, typical = len(owners), observation.service_rate * self._correction.factor()
        each = [(one.service_rate or observation.service_rate) * self._correction.factor(one.name) for one in replicas]
        group = Group(
            owners=owners,
            serving=serving,
            in_handover_s=self._handovers.remaining_s(observation),
            starting_s=np.array([*startups.remaining_s(observation, start_s), *[start_s] * new]),
            rates=np.array([*each, *[typical] * new]),
            pause_s=observation.rebalance_time_s,
            stops_all=observation.stops_all,
        )
        lag = np.array([float(load.lag) for load in observation.partitions])
        if observation.commit_age_s:
            # events that were served since the commits still count as lag
            held = np.bincount(serving + 1, lag, minlength=len(group.rates) + 1)
            done = np.append(0.0, group.rates * observation.commit_age_s)
            lag = lag * (np.maximum(0.0, held - done) / np.maximum(1.0, held))[serving + 1]
        return group, self._history.waiting(lag, self.settings.latency_target_s)

    def _learn(self, observation: GroupObservation, then: Situation, chosen: Candidate) -> None:
        """Compare the reports with a replay of the last interval."""
        arrived = self._history.last
        due, every = _replayed(then, chosen, arrived[None], due_s=len(arrived) * then.grid.slot_s)[:, 0]
        got = np.bincount(chosen.owners, arrived.sum(axis=0), minlength=len(every))  # by replica
        self._modelled = {name: float(due[place]) for name, place in self._numbers.items()}
        present = set(observation.replica_names)
        for name, late in self._reports.reported.items():
            place = self._numbers.get(name)
            if place is not None and name in present:
                self._correction.learn(name, late, float(every[place]), float(got[place]))

    def _compare(self, now: Situation) -> list[Candidate]:
        """Return the plans that could follow, with their predictions."""
        group, paths, grid = now.group, now.paths, now.grid
        partitions = len(group.owners)
        found, done = Plans([], []), list[Candidate]()
        if now.present and (group.owners >= 0).all():
            found.owners.append(group.owners)
            found.replicas.append(tuple(range(now.present)))
        loads = [paths.sizes + 1e-6]
        if len(found.owners):
            done = self._predicted(now, found, 0)
            if done[0].late_cost > self.options.change_price_s:
                loads.append(paths.sizes + now.waiting.sum(axis=0) + 1e-6)
        by_path = paths.events.sum(axis=2)
        waits = float(now.waiting.sum())
        needs = pooled_need(by_path, waits, float(group.rates[-1]), grid.slot_s, grid.target_s, partitions)
        wanted = {*needs.tolist(), *(needs + 1).tolist(), now.present, now.present - 1}
        counts = sorted(wanted & {*range(1, partitions + 1)})
        most = MAX_COUNTS if partitions < 1000 else 2
        while counts:
            if len(counts) > most:
                counts = sorted({counts[place] for place in np.linspace(0, len(counts) - 1, most).astype(int)})
            add_plans(found, group, loads, now.present, counts)
            done += self._predicted(now, found, len(done))
            best, top = min(done, key=_cost), counts[-1]
            # partitions cannot be shared: more replicas may be needed than for one queue
            limit = min(partitions, len(best.replicas) + int(best.late_cost / now.paid_s))
            counts, most = list(range(top + 1, limit + 1)), 3
        return done

    def _predicted(self, now: Situation, found: Plans, known: int) -> list[Candidate]:
        """Return predictions of all plans but the first `known`."""
        # the first plan is the one to which the queue model compares all others
        first = min(known, 1)
        owners = np.array(found.owners[:first] + found.owners[known:])
        each = found.replicas[:first] + found.replicas[known:]
        group, paths, options = now.group, now.paths, self.options
        highest = int(max(owners.max(), *map(max, each), now.present - 1)) + 1
        seen = group._replace(rates=group.rates[:highest], starting_s=group.starting_s[:highest])
        lost, every = late_of_plans(now.waiting, paths.events, owners, seen, now.grid)
        middle = paths.middle
        late = lost @ paths.weights + every[:, middle] - lost[:, middle]  # and what is expected later
        moves = owners != group.owners
        moved = np.count_nonzero(moves, axis=1)
        counts = np.array([len(one) for one in each])
        starts = np.array([sum(one >= now.present for one in replicas) for replicas in each])
        late_cost = options.price / (group.rates[-1] * self._budget.allowed_share) * late * self._budget.factor(late)
        cost = counts * now.paid_s + starts * options.start_price_s + late_cost
        cost += options.move_price_s * moved + options.change_price_s * ((moved > 0) | (counts != now.present))
        cost += PINNED * np.count_nonzero(moves & (group.in_handover_s > 0), axis=1)
        figures = zip(late.tolist(), late_cost.tolist(), cost.tolist(), moved.tolist(), strict=True)
        return [Candidate(*plan, *some) for plan, some in zip(zip(owners, each, strict=True), figures, strict=True)][
            first:
        ]

    def _decision(
        self, observation: GroupObservation, now: Situation, chosen: Candidate, found: list[Candidate]
    ) -> Decision:
        names = dict(enumerate(observation.replica_names))
        fresh = fresh_names(self.settings.replica_prefix, {*names.values(), *observation.assignment.values()})
        names |= {replica: next(fresh) for replica in chosen.replicas if replica >= now.present}
        if not self.early:
            self._numbers = {name: place for place, name in names.items()}
        partitions = [load.partition for load in observation.partitions]
        owners = dict(zip(partitions, map(names.__getitem__, chosen.owners.tolist()), strict=True))
        moved = np.flatnonzero(chosen.owners != now.group.owners).tolist()
        self._handovers.begin(observation, [partitions[place] for place in moved])
        plan = Plan(tuple(names[one] for one in chosen.replicas), owners)
        decision = change(observation, plan, _why(now, chosen, found) + self._out_of_reach(now, found))
        expected = now.paths.expected(now.grid.slot_s)
        return replace(decision, alternatives=tuple(_alternatives(now, chosen, found)), expected=expected)

    def _out_of_reach(self, now: Situation, found: list[Candidate]) -> str:
        """Return a text if no plan meets the SLO within the horizon because a start comes too late; else none."""
        paths, late = now.paths, min(one.late for one in found)
        middle = paths.events[[paths.middle]].sum(axis=2)
        waits, rate = float(now.waiting.sum()), float(now.group.rates[-1])
        need = int(pooled_need(middle, waits, rate, now.grid.slot_s, now.grid.target_s, len(now.group.owners))[0])
        if not now.start_s or need <= now.present or late <= self._budget.allowed_share * (waits + middle.sum()) + 1:
            return ""
        return f"; out of reach: needs {need} replicas {number(now.start_s)} s earlier"


def _replayed(now: Situation, plan: Candidate, paths: Floats, due_s: float = 0.0) -> Floats:
    """Return the late events by kind, path and replica under a plan: those due until `due_s`, and all."""
    highest = max(int(plan.owners.max()), *plan.replicas, now.present - 1) + 1
    group = now.group._replace(rates=now.group.rates[:highest], starting_s=now.group.starting_s[:highest])
    grid = now.grid._replace(saved_s=due_s, extrapolate=False)
    return late_by_replica(now.waiting, paths, plan.owners, group, grid)


def _cost(one: Candidate) -> float:
    return one.cost


def _alternatives(now: Situation, chosen: Candidate, found: list[Candidate]) -> Iterator[Alternative]:
    cheapest: dict[int, Candidate] = {}
    for one in sorted(found, key=_cost):
        cheapest.setdefault(len(one.replicas), one)
    cheapest.pop(len(chosen.replicas), None)
    for one in (chosen, *cheapest.values()):
        yield Alternative(len(one.replicas), one.moved, _in_sla(now, one), one.cost)


def _in_sla(now: Situation, one: Candidate) -> float:
    events = max(1.0, float(now.waiting.sum() + now.paths.events[now.paths.middle].sum()))
    return min(1.0, max(0.0, 1 - one.late / events))


def _why(now: Situation, chosen: Candidate, found: list[Candidate]) -> str:
    text = f"{number(float(now.paths.sizes.sum()))} events expected per interval; {_describe(now, chosen)}"
    staying = next((one for one in found if not one.moved and len(one.replicas) == now.present), None)
    if staying is not None and staying is not chosen and (chosen.moved or len(chosen.replicas) != now.present):
        return f"{text}; without a change: {_describe(now, staying).removeprefix('with ')}"
    others = [one for one in found if len(one.replicas) != len(chosen.replicas)]
    return f"{text}, {_describe(now, min(others, key=_cost))}" if others else text


def _describe(now: Situation, one: Candidate) -> str:
    count = len(one.replicas)
    replicas = f"{count} replica" + "s" * (count != 1)
    return f"with {replicas} {100 * _in_sla(now, one):.4g} % in time at cost {number(one.cost)}"
