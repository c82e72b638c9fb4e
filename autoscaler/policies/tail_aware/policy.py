"""The policy: of the plans that could follow, the one whose replicas and late events together cost least."""

from itertools import islice, pairwise
from math import ceil

import numpy as np

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import change, hold, number
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory
from autoscaler.policies.tail_aware.budget import Budget
from autoscaler.policies.tail_aware.candidates import Candidate, Situation, candidates, late_for_certain
from autoscaler.policies.tail_aware.demand import Demand
from autoscaler.policies.tail_aware.handovers import Handovers
from autoscaler.policies.tail_aware.patience import Patience
from autoscaler.policies.tail_aware.settings import TailAwareSettings
from autoscaler.policies.tail_aware.startups import StartUps


class TailAware:
    """Decides count and assignment together, by predicted late events (docs/model.md).

    Each tick: learn how events arrive and how many will; think of plans; predict for each which events would be late,
    those that wait already and those that handovers delay included; take the cheapest.
    """

    name = "tail-aware"

    def __init__(self, settings: PolicySettings, options: TailAwareSettings | None = None) -> None:
        self.settings = settings
        self.options = options or TailAwareSettings()
        self._history = ArrivalHistory()
        self._demand = Demand()
        self._budget = Budget(settings.percentile)
        self._handovers = Handovers()
        self._startups = StartUps()
        self._patience = Patience(self.options.patience_s)

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the cheapest plan; a hold where that is the present one."""
        if not observation.partitions:
            return hold(observation, "the topic has no partitions")
        self._startups.observe(observation)
        counts = self._history.observe(observation)
        ahead = self._ahead(observation)
        self._demand.observe(counts, lead=ahead[-1])
        now = self._situation(observation, ahead)
        found = list(candidates(now))
        chosen = self._patient(observation, found)
        self._budget.book(late_for_certain(now, chosen), float(counts.sum()))
        return self._decision(observation, now, chosen, found)

    def _startup_s(self, observation: GroupObservation) -> float:
        return max(observation.startup_s, self._startups.typical_s)

    def _ahead(self, observation: GroupObservation) -> tuple[int, ...]:
        """Return which of the next intervals are looked at, 1 is the next one.

        All that W and a handover begun now reach into, and the one in which a replica that is asked for now would
        serve: before that it changes nothing.
        """
        interval_s = self._history.interval_s
        handover_s = observation.rebalance_time_s * (1 + self.options.lead_factor)
        near = max(1, ceil(max(self.settings.latency_target_s, handover_s) / interval_s - 1e-9))
        start = ceil(self._startup_s(observation) / interval_s - 1e-9) + 1
        return (*range(1, near + 1), *([start] if start > near else []))

    def _situation(self, observation: GroupObservation, ahead: tuple[int, ...]) -> Situation:
        history, options = self._history, self.options
        target_s = max(history.slot_s, self.settings.latency_target_s - observation.overhead_s)
        demand = [self._demand.ahead(intervals) for intervals in ahead]
        shapes = history.shapes()
        index = {name: number for number, name in enumerate(observation.replica_names)}
        owners = [index.get(observation.assignment.get(load.partition, ""), -1) for load in observation.partitions]
        lag = np.array([float(load.lag) for load in observation.partitions])
        near_s = history.interval_s * sum(after == before + 1 for before, after in pairwise((0, *ahead)))
        return Situation(
            waiting=history.waiting(lag, self.settings.latency_target_s),
            expected=np.concatenate([shapes * events for events in demand]),
            # beyond the near intervals one is looked at that a start begun now is for: a second later is early enough
            # for the one after, so it is not paid for
            paid_s=near_s,
            variance=self._demand.variance(),
            sizes=np.maximum(demand[0], demand[-1]),
            shape=history.shape(),
            owners=np.array(owners, np.int64),
            in_handover_s=self._handovers.remaining_s(observation),
            rates=np.array([one.service_rate or observation.service_rate for one in observation.replicas]),
            typical_rate=observation.service_rate,
            slot_s=history.slot_s,
            target_s=target_s,
            pause_s=observation.rebalance_time_s,
            start_s=near_s if len(ahead) * history.interval_s > near_s else 0.0,
            late_price_s=options.price / (observation.service_rate * self._budget.allowed_share),
            scarcity=self._budget.scarcity,
            start_price_s=options.start_price_s,
            move_price_s=options.move_price_s,
        )

    def _patient(self, observation: GroupObservation, found: list[Candidate]) -> Candidate:
        """Return the cheapest; with fewer replicas only where those can go on so, and fewer have sufficed for a while.

        A replica may be saved by living on the slack of W, but is not stopped for it: it would come back at once.
        """
        now = observation.requested_replicas
        allowed = [one for one in found if one.lasts or len(one.replicas) >= now] or found
        best = min(allowed, key=_cost)
        least = min(now, self._patience.least(observation.at_s, len(best.replicas), self._startup_s(observation)))
        chosen = min((one for one in allowed if len(one.replicas) >= least), key=_cost, default=best)
        self._patience.note(observation.at_s, now, len(chosen.replicas))
        return chosen

    def _decision(
        self, observation: GroupObservation, now: Situation, chosen: Candidate, found: list[Candidate]
    ) -> Decision:
        names = list(observation.replica_names)
        fresh = fresh_names(self.settings.replica_prefix, {*names, *observation.assignment.values()})
        names += islice(fresh, max(0, max(chosen.replicas) + 1 - len(names)))
        owners = {
            load.partition: names[owner]
            for load, owner in zip(observation.partitions, chosen.owners.tolist(), strict=True)
        }
        self._handovers.begin(observation, owners)
        plan = Plan(tuple(names[one] for one in chosen.replicas), owners)
        return change(observation, plan, _why(now, chosen, found))


def _cost(one: Candidate) -> float:
    return one.cost


def _why(now: Situation, chosen: Candidate, found: list[Candidate]) -> str:
    """Say what the plan costs in late events, and what the best of the others would have."""
    said = f"{number(float(now.sizes.sum()))} events expected per interval, {number(chosen.late)} of them late"
    said += f" on {len(chosen.replicas)}"
    others = [one for one in found if len(one.replicas) != len(chosen.replicas)]
    if others:
        other = min(others, key=_cost)
        said += f", {number(other.late)} on {len(other.replicas)} ; one is worth {now.late_price_s:.2g} replica-seconds"
    return said
