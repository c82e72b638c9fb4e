"""Build observations, and a policy with a fixed decision."""

from autoscaler.model import Action, Decision, GroupObservation, PartitionLoad, Plan, Replica
from autoscaler.ports import Policy


def seen(
    rates, lags=None, *, replicas=1, owned=None, at_s=0.0, not_ready=(), rebalance_time_s=0.05
) -> GroupObservation:
    """Return an observation. rates, lags: by partition. replicas: a count or names. owned: replica index by partition.

    μ = 200 events/s. With W = 0.5 s the capacity is 180 events/s and 90 events at f_up, 80 and 40 at f_down.
    """
    names = [f"payment-{i}" for i in range(replicas)] if isinstance(replicas, int) else list(replicas)
    lags = [0] * len(rates) if lags is None else lags
    if owned is None:
        owned = [p % len(names) for p in range(len(rates))] if names else []
    return GroupObservation(
        at_s=at_s,
        partitions=tuple(PartitionLoad(p, rate, lag) for p, (rate, lag) in enumerate(zip(rates, lags, strict=True))),
        replicas=tuple(Replica(name, name not in not_ready) for name in names),
        assignment={p: names[owner] for p, owner in enumerate(owned)},
        service_rate=200.0,
        rebalance_time_s=rebalance_time_s,
    )


class Wants(Policy):
    """Policy that always wants `count` replicas with all partitions on the first, or only a count."""

    name = "wants"

    def __init__(self, count, *, counts_only=False, action=None):
        self.count = count
        self.counts_only = counts_only
        self.action = action

    def decide(self, observation):
        now = observation.requested_replicas
        names = tuple(f"payment-{i}" for i in range(self.count))
        same = Action.NO_CHANGE if self.action is None else self.action
        action = Action.UP if self.count > now else Action.DOWN if self.count < now else same
        assignment = None if self.counts_only else {one.partition: names[0] for one in observation.partitions}
        return Decision(action, Plan(names, assignment), f"wants {self.count}")
