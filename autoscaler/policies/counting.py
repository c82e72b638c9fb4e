"""Baselines that look at sums only: `linear`, what clouds offer, and `static`, a fixed count."""

from autoscaler.model import Decision, GroupObservation
from autoscaler.packing.least_loaded import spread
from autoscaler.policies.planning import (
    change,
    counted_hold,
    counted_plan,
    hold,
    items_of,
    number,
    plan_for,
    replicas_for,
    unowned,
)
from autoscaler.policies.settings import PolicySettings


class Linear:
    """Replicas = ⌈Σλ/(μ·W·f)⌉ (CLOSER 2024): up with f_up, down with f_down. The group's assignor places partitions.

    μ·W is what a replica serves in time of the events of one second, so W counts as 1 s at most; the paper has 0.5 s.
    """

    name = "linear"

    def __init__(self, settings: PolicySettings) -> None:
        self.settings = settings

    def decide(self, observation: GroupObservation) -> Decision:
        """Compare the count with what Σλ asks for at f_up and f_down."""
        now = observation.requested_replicas
        total = sum(load.arrival_rate for load in observation.partitions)
        in_time = observation.service_rate * min(1.0, self.settings.latency_target_s)
        rule = "μ·W" if self.settings.latency_target_s < 1 else "μ"
        for share, beyond in ((self.settings.f_up, int.__gt__), (self.settings.f_down, int.__lt__)):
            allowed = in_time * share
            wanted = replicas_for(total, allowed)
            if beyond(wanted, now):
                why = f"{number(total)} events/s at {number(allowed)} for each replica ({rule}·{share})"
                return change(observation, counted_plan(observation, wanted, self.settings.replica_prefix), why)
        why = f"{number(total)} events/s suit the present count: hold {now}"
        return counted_hold(observation, self.settings.replica_prefix, why)


class Static:
    """A fixed number of replicas with the partitions spread evenly once: over-provisioning, or no scaling at all."""

    name = "static"

    def __init__(self, settings: PolicySettings) -> None:
        self.settings = settings

    def decide(self, observation: GroupObservation) -> Decision:
        """Restore the count, or give owners to partitions without one; otherwise hold."""
        wanted = self.settings.static_replicas
        why = unowned(observation)
        if observation.requested_replicas != wanted:
            why = f"static keeps {wanted}"
        if not why:
            return hold(observation, f"static keeps {wanted}: hold {wanted}")
        bins = spread(items_of(observation), wanted)
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix), why)
