"""The policy: carries out each plan in a queue model, on the arrivals that may come, and chooses the cheapest."""

from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from autoscaler.model import Decision, GroupObservation, Plan, RecentArrivals
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import change, no_change
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware import plans
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory, Floats
from autoscaler.policies.tail_aware.forecast import Ensemble
from autoscaler.policies.tail_aware.memory import Budget, Handovers, RecentPeaks, ServiceRateCorrection, StartUpTimes
from autoscaler.policies.tail_aware.queues import Grid, Group, pooled_need

EAGER_LEAD: Final = 3.0
"""Factor on `lead_factor` if a rebalance stops all partitions: then it must pay off over a longer time."""


class TailAware:
    """Predicts the late events of several plans and chooses the one with the lowest cost."""

    name = "tail-aware"

    def __init__(self, settings: PolicySettings, options: plans.TailAwareSettings | None = None) -> None:
        self.settings, self.options = settings, options or plans.TailAwareSettings()
        self._history = ArrivalHistory()
        self._ensemble = Ensemble(self._history)
        self._budget = Budget(settings.percentile)
        self._correction = ServiceRateCorrection(self._budget.allowed_share)
        self._startups = StartUpTimes()
        self._handovers = Handovers()
        self._peaks = RecentPeaks()
        self._before: tuple[plans.Situation, plans.Candidate] | None = None
        """The last tick and its plan."""
        self._numbers: dict[str, int] = {}
        """Number of each replica at the last tick, by name."""
        self._modelled: dict[str, float] = {}
        """Late events of the last interval by replica, according to the queue model."""
        self._urgent = False
        self.early = False
        """Whether the last decision was made between two ticks. There is at most one in an interval."""
        self.late = 0.0
        """Late events of the last interval, including upstream."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the cheapest plan."""
        self._budget.report(observation)
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
        comparison = plans.Comparison(now, self.options, self._budget.allowance, self.early)
        found = plans.compare(now, self.options, comparison.allowance)
        chosen = comparison.choose(found)
        if chosen is None:
            return no_change(observation, "no change before the next tick would help")
        if not self.early:
            self._before = now, chosen
        return self._decision(observation, comparison, chosen, found)

    def urgent(self, arrived: RecentArrivals) -> bool:
        """Return whether more events since the last tick would be late than predicted. At most once between ticks."""
        if self._before is None or self.early:
            return False
        now, chosen = self._before
        slots = len(arrived.counts)
        least = 1 if self._history.in_bursts else 2  # one slot of a stream looks like a burst
        known = arrived.counts.any() and arrived.counts.shape[1] == len(now.group.owners)
        if not known or not least <= slots <= len(self._history.last) - least:
            return False
        excess = self._excess(np.asarray(arrived.counts, np.float64), now)
        path = (now.paths.events[now.paths.middle] + excess) * excess.any()
        path[:slots] = arrived.counts
        late = now.replayed(chosen[:2], np.stack((path, np.zeros_like(path))))[1].sum(axis=1)
        self._urgent = bool(late[0] - late[1] > chosen.late + 1.0)
        return self._urgent

    def _at_tick(self, observation: GroupObservation) -> plans.Situation:
        """Learn from the last interval; return the situation."""
        history, budget, options = self._history, self._budget, self.options
        self._startups.observe(observation)
        counts = history.observe(observation)
        if self._before is not None and len(self._before[0].group.owners) == len(counts):
            self._learn(observation, *self._before)
        self.late = budget.book(self._modelled, float(counts.sum()))
        start_s, pause_s = self._startups.alone_s, observation.rebalance_time_s
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
            keep_s = start_s * options.price / budget.allowed_share * float(budget.allowance.factor(np.zeros(1))[0])
            least = self._peaks.least(starting + 1, min(options.keep_s, keep_s))
        return plans.Situation(
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

    def _meanwhile(self, observation: GroupObservation, then: plans.Situation) -> plans.Situation:
        """Return the situation between two ticks: that of the last tick, with the arrivals since then."""
        begun, whole = self._history.begun, len(self._history.last)
        excess = self._excess(begun, then)
        events = np.roll(then.paths.events + excess, -len(begun), axis=1)
        paths = then.paths._replace(events=events, sizes=then.paths.sizes + excess[:whole].sum(axis=0))
        group, waiting = self._group(observation)
        return then._replace(group=group, present=group.present, waiting=waiting, paths=paths)

    def _excess(self, begun: Floats, then: plans.Situation) -> Floats:
        """Return the events beyond each path until the next tick, if a stream has grown more than chance explains."""
        excess, whole, came = then.paths.events[then.paths.middle].copy(), len(self._history.last), float(begun.sum())
        excess[whole:] = 0.0
        expected = float(excess.sum()) * len(begun) / whole
        grown = came - 2 * came**0.5 > expected > 0 and begun.sum(axis=1).max() <= 0.6 * came
        return np.asarray((came / expected - 1 if grown and not self._history.in_bursts else 0.0) * excess)

    def _group(self, observation: GroupObservation) -> tuple[Group, Floats]:
        """Return the group with numbered replicas, new ones included, and the waiting events."""
        replicas, startups = observation.replicas, self._startups
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
            starting_s=np.array([*startups.remaining_s(observation), *[startups.alone_s] * new]),
            present=len(replicas),
            each_s=startups.each_s,
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

    def _learn(self, observation: GroupObservation, then: plans.Situation, chosen: plans.Candidate) -> None:
        """Compare the reports with a replay of the last interval."""
        arrived = self._history.last
        due, every = then.replayed(chosen[:2], arrived[None], due_s=len(arrived) * then.grid.slot_s)[:, 0]
        got = np.bincount(chosen.owners, arrived.sum(axis=0), minlength=len(every))  # by replica
        self._modelled = {name: float(due[place]) for name, place in self._numbers.items()}
        present = set(observation.replica_names)
        for name, late in self._budget.reported.items():
            place = self._numbers.get(name)
            if place is not None and name in present:
                self._correction.learn(name, late, float(every[place]), float(got[place]))

    def _decision(
        self, observation: GroupObservation, of: plans.Comparison, chosen: plans.Candidate, found: list[plans.Candidate]
    ) -> Decision:
        now = of.now
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
        reason = plans.why(now, chosen, found) + plans.out_of_reach(now, found, self._budget.allowed_share)
        expected, compared = now.paths.expected(now.grid.slot_s), tuple(plans.alternatives(chosen, found))
        decided = change(observation, plan, reason)
        return replace(decided, alternatives=compared, expected=expected, comparison=of._replace(names=names))
