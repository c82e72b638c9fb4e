"""Tail-latency-aware bin packing, Algorithms 1 and 2 of Ezzeddine, Baude, Huet (CLOSER 2024)."""

from autoscaler.model import Decision, GroupObservation
from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.least_loaded import least_loaded, least_loaded_below
from autoscaler.policies.planning import change, describe_unowned, items_of, no_change, number, plan_for
from autoscaler.policies.settings import PolicySettings


class BinPacking:
    """Adds replicas if the load does not fit at f_up, removes some if fewer are enough at f_down, else fixes overloads.

    tail_aware: Algorithm 2. It chooses the action by the present lag, and packs the lag after the rebalance: lag +
    λ·t_r. Algorithm 1 is the same with t_r = 0. Both fix the overload of a replica by a packing at f_up over all
    requested replicas.
    """

    def __init__(self, settings: PolicySettings, *, tail_aware: bool) -> None:
        self.settings, self.tail_aware = settings, tail_aware

    @property
    def name(self) -> str:
        """Name in kebab case."""
        return "algorithm-2" if self.tail_aware else "algorithm-1"

    def decide(self, observation: GroupObservation) -> Decision:
        """Compare the counts of Least-Loaded at f_up and f_down with the requested count. Then check each replica."""
        now = observation.requested_replicas
        f_up, f_down = self.settings.f_up, self.settings.f_down
        items = items_of(observation)
        tight = least_loaded(items, self._capacity(observation, f_up))
        if len(tight) > now:
            return self._make_room(observation, self._why_up(observation, items))
        loose = least_loaded_below(items, self._capacity(observation, f_down), now)
        if loose is not None:
            why = f"{_total(items)} fit {len(loose)} with {self._allowed(observation, f_down)}"
            return self._shrink(observation, why)
        if why := describe_unowned(observation) or self._violation(observation):
            return self._make_room(observation, why)
        why = f"{_total(items)} need {len(tight)} at f_up {f_up} and no fewer than {now} at f_down {f_down}"
        return no_change(observation, f"{why}: no change at {now}")

    def _make_room(self, observation: GroupObservation, why: str) -> Decision:
        now = observation.requested_replicas
        items = self._expected(observation)
        bins = least_loaded(items, self._capacity(observation, self.settings.f_up))
        if len(bins) <= now:
            over_all = least_loaded(items, self._capacity(observation, self.settings.f_up), at_least=now)
            bins = over_all if len(over_all) == now else bins
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix, at_least=now), why)

    def _shrink(self, observation: GroupObservation, why: str) -> Decision:
        """Remove replicas, unless the load after the rebalance would not fit."""
        now = observation.requested_replicas
        bins = least_loaded(self._expected(observation), self._capacity(observation, self.settings.f_down))
        if len(bins) >= now and not describe_unowned(observation):
            ahead = number(observation.rebalance_time_s * 1000)
            return no_change(
                observation, f"{why}, but {len(bins)} are needed after {ahead} ms of rebalancing: no change at {now}"
            )
        if len(bins) >= now:
            return self._make_room(observation, describe_unowned(observation))
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix), why)

    def _expected(self, observation: GroupObservation) -> tuple[Item, ...]:
        return items_of(observation, observation.rebalance_time_s if self.tail_aware else 0.0)

    def _capacity(self, observation: GroupObservation, share: float) -> Capacity:
        return Capacity.of_replica(observation.service_rate, self.settings.latency_target_s, share)

    def _allowed(self, observation: GroupObservation, share: float) -> str:
        capacity = self._capacity(observation, share)
        return (
            f"{number(capacity.arrival_rate)} events/s (μ·{share}) and {number(capacity.lag)} events (μ·W·{share}) each"
        )

    def _why_up(self, observation: GroupObservation, items: tuple[Item, ...]) -> str:
        now = observation.requested_replicas
        if not now:
            return "no replica is requested"
        replicas = f"{now} replica" + "s" * (now > 1)
        return self._violation(observation) or (
            f"{_total(items)} do not pack into {replicas} with {self._allowed(observation, self.settings.f_up)}"
        )

    def _violation(self, observation: GroupObservation) -> str:
        """Return a text about the replica that exceeds f_up most; empty if none does or no placement can help.

        A replica with only one active partition is no violation: moving partitions cannot relieve it.
        """
        share = self.settings.f_up
        capacity = self._capacity(observation, share)
        items_by_owner: dict[str, list[Item]] = {}
        for item in items_of(observation):
            if not item.idle:
                items_by_owner.setdefault(observation.assignment.get(item.partition, ""), []).append(item)
        worst, text = 1.0, ""
        for replica in observation.replica_names:
            items = items_by_owner.get(replica, [])
            total = Bin(tuple(items))
            for value, allowed, unit, rule in (
                (total.lag, capacity.lag, "events", f"μ·W·{share}"),
                (total.arrival_rate, capacity.arrival_rate, "events/s", f"μ·{share}"),
            ):
                if len(items) > 1 and value / allowed > worst:
                    worst = value / allowed
                    text = f"{replica} has {number(value)} {unit}, {number(allowed)} allowed ({rule})"
        return text


def _total(items: tuple[Item, ...]) -> str:
    total = Bin(items)
    return f"{number(total.arrival_rate)} events/s and {number(total.lag)} events of lag"
