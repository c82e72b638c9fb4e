"""The policy: carries out each plan in a queue model, on the arrivals that may come, and chooses the cheapest."""

from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from autoscaler.estimation.startup_times import StartUpTimes
from autoscaler.jit import Floats
from autoscaler.model import Decision, GroupObservation, Plan, RecentArrivals
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import change, no_change
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware import plans
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory, Ensemble
from autoscaler.policies.tail_aware.memory import Budget, Handovers, RecentPeaks, ServiceRateCorrection
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
        self._correction = ServiceRateCorrection(self._budget.allowance.share)
        self._startups, self._handovers, self._peaks = StartUpTimes(), Handovers(), RecentPeaks()
        self._before: tuple[plans.Comparison, plans.Candidate] | None = None
        """The comparison of the last tick and its plan."""
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
        self.early = urgent and self._history.begin(observation.recent)
        if self.early and len(self._history.begun) >= len(self._history.last):
            return no_change(observation, "the next tick is due")
        now = self._meanwhile(observation) if self.early else self._at_tick(observation)
        comparison = plans.Comparison(now, self.options, self._budget.allowance, self.early)
        found = comparison.plans()
        chosen = comparison.choose(found)
        if chosen is None:
            return no_change(observation, "no change before the next tick would help")
        return self._decision(observation, comparison, chosen, found)

    def urgent(self, arrived: RecentArrivals) -> bool:
        """Return whether more events since the last tick would be late than predicted. At most once between ticks."""
        if self._before is None or self.early:
            return False
        (now, *_), chosen = self._before
        slots = len(arrived.counts)
        least = 1 if self._history.in_bursts else 2  # one slot of a stream looks like a burst
        known = arrived.counts.shape[1] == len(now.group.owners) and arrived.counts.any()
        if not (least <= slots <= len(self._history.last) - least and known):
            return False
        excess = self._excess(np.asarray(arrived.counts, np.float64), now)
        paths = np.zeros((2, *(excess if len(excess) else self._history.last).shape))
        if len(excess):
            paths[0] = now.paths.events[now.paths.middle] + excess
        paths[0, :slots] = arrived.counts
        late = now.replayed(chosen.owners, paths)[:, 1].T.copy().sum(axis=1)
        self._urgent = bool(late[0] - late[1] > chosen.late + 1.0)
        return self._urgent

    def _at_tick(self, observation: GroupObservation) -> plans.Situation:
        """Learn from the last interval; return the situation."""
        history, options, pause_s = self._history, self.options, observation.rebalance_time_s
        self._startups.observe(observation)
        counts = history.observe(observation)
        self.late = self._budget.book(self._learn(observation), float(counts.sum()))
        start_s, interval_s, slot_s = self._startups.alone_s, history.interval_s, history.slot_s
        target_s = max(slot_s, self.settings.latency_target_s - observation.overhead_s)
        lead_s = pause_s * (1 + options.lead_factor * (EAGER_LEAD if observation.stops_all else 1))
        near = max(1, ceil(max(target_s, lead_s) / interval_s - 1e-9))
        starting = max(1, ceil(start_s / interval_s - 1e-9))  # intervals
        horizon = max(near, starting + 1) if start_s > 0 else near
        self._ensemble.observe(counts, horizon, observation.inflow)
        group, waiting = self._group(observation)
        rate, least = float(group.rates[-1]), 0
        if start_s > target_s:  # until a surge is observed and a new replica has started, the present ones serve alone
            if self._before is None:
                self._peaks.observe(observation.at_s, 0.0, observation.requested_replicas)
            newest = history.by_slot[-starting - 2 :].reshape(1, -1)
            need = pooled_need(newest, 0.0, rate, slot_s, target_s, len(counts))
            self._peaks.observe(observation.at_s, float(counts.sum()), int(need[0]))
            # then a replica that is kept has cost as much as the events that would be late while a new one starts
            allowance = self._budget.allowance
            keep_s = start_s * options.price / allowance.share * float(allowance.factor(0.0))
            least = self._peaks.least(starting + 1, min(options.keep_s, keep_s))
        paths = self._ensemble.paths(horizon, float(group.rates[: group.present].sum()) or rate)
        saved_s = interval_s + pause_s + start_s + 0.5 * target_s
        grid = Grid(slot_s, history.begin_s, target_s, saved_s, extrapolate=start_s > 0)
        return plans.Situation(group, waiting, paths, grid, near * interval_s, interval_s, least)

    def _meanwhile(self, observation: GroupObservation) -> plans.Situation:
        """Return the situation between two ticks: that of the last tick, with the arrivals since then."""
        assert self._before is not None, "urgent() refuses it before the first tick"
        then, begun = self._before[0].now, self._history.begun
        excess = self._excess(begun, then)
        events = np.roll(then.paths.events + excess if len(excess) else then.paths.events, -len(begun), axis=1)
        sizes = then.paths.sizes + excess[: len(self._history.last)].sum(axis=0)
        group, waiting = self._group(observation)
        return then._replace(group=group, waiting=waiting, paths=then.paths._replace(events=events, sizes=sizes))

    def _excess(self, begun: Floats, then: plans.Situation) -> Floats:
        """Return the events beyond each path until the next tick, or none unless a stream grew more than by chance."""
        path, whole, came = then.paths.events[then.paths.middle], len(self._history.last), float(begun.sum())
        expected = float(path[:whole].sum()) * len(begun) / whole
        grown = came - 2 * came**0.5 > expected > 0 and begun.sum(axis=1).max() <= 0.6 * came
        more = came / expected - 1 if grown and not self._history.in_bursts else 0.0
        return np.concatenate((more * path[:whole], 0.0 * path[whole:])) if more else path[:0]

    def _group(self, observation: GroupObservation) -> tuple[Group, Floats]:
        """Return the group with numbered replicas, new ones included, and the waiting events."""
        replicas, startups, correction = observation.replicas, self._startups, self._correction
        index, loads = {name: place for place, name in enumerate(observation.replica_names)}, observation.partitions
        names, now = self._handovers.serving(observation), observation.assignment
        serving = np.array([index.get(names.get(load.partition, ""), -1) for load in loads], np.int64)
        owners = [index.get(now.get(load.partition, ""), -1) for load in loads] if names is not now else serving
        correction.keep(index)
        new, typical = len(loads), observation.service_rate * correction.factor()
        each = [(one.service_rate or observation.service_rate) * correction.factor(one.name) for one in replicas]
        group = Group(
            owners=np.array(owners, np.int64),
            serving=serving,
            in_handover_s=self._handovers.remaining_s(observation),
            starting_s=np.array([*startups.remaining_s(observation), *[startups.alone_s] * new]),
            rates=np.array([*each, *[typical] * new]),
            pause_s=observation.rebalance_time_s,
            stops_all=observation.stops_all,
            present=len(replicas),
            each_s=startups.each_s,
        )
        lag = np.array([load.lag for load in loads], np.float64)
        if observation.commit_age_s:
            # events that were served since the commits still count as lag
            held = np.bincount(serving + 1, lag, minlength=len(group.rates) + 1)
            done = np.append(0.0, group.rates * observation.commit_age_s)
            lag = lag * (np.maximum(0.0, held - done) / np.maximum(1.0, held))[serving + 1]
        return group, self._history.waiting(lag, self.settings.latency_target_s)

    def _learn(self, observation: GroupObservation) -> dict[str, float]:
        """Compare the reports with a replay of the last interval. Return its late events by replica."""
        arrived = self._history.last
        if self._before is None or len(self._before[0].now.group.owners) != arrived.shape[1]:
            return {}
        (now, *_, names), chosen = self._before
        due, every = now.replayed(chosen.owners, arrived[None], due_s=len(arrived) * now.grid.slot_s)[..., 0].T
        got = np.bincount(chosen.owners, arrived.sum(axis=0), minlength=len(every))  # by replica
        numbers, present = {name: place for place, name in names.items()}, set(observation.replica_names)
        for name, late in self._budget.reported.items():
            if name in present and name in numbers:
                self._correction.learn(name, late, float(every[numbers[name]]), float(got[numbers[name]]))
        return {name: float(due[place]) for name, place in numbers.items()}

    def _decision(
        self, observation: GroupObservation, of: plans.Comparison, chosen: plans.Candidate, found: list[plans.Candidate]
    ) -> Decision:
        now, names, replicas = of.now, dict(enumerate(observation.replica_names)), chosen.in_use.nonzero()[0].tolist()
        fresh = fresh_names(self.settings.replica_prefix, {*names.values(), *observation.assignment.values()})
        names |= {replica: next(fresh) for replica in replicas if replica >= now.group.present}
        of = of._replace(names=names)
        if not self.early:
            self._before = of, chosen
        partitions = [load.partition for load in observation.partitions]
        moved = np.flatnonzero(chosen.owners != now.group.owners).tolist()
        self._handovers.begin(observation, [partitions[place] for place in moved])
        owners = dict(zip(partitions, map(names.__getitem__, chosen.owners.tolist()), strict=True))
        plan = Plan(tuple(map(names.__getitem__, replicas)), owners)
        decided = change(observation, plan, of.reason(chosen, found))
        compared, expected = plans.alternatives(chosen, found), now.paths.expected(now.grid.slot_s)
        return replace(decided, alternatives=compared, expected=expected, comparison=of)
