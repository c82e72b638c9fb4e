"""A group that does not exist, so that no decision about the real one waits for the compiler."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action, GroupObservation, PartitionLoad, Plan, RecentArrivals, Replica
from autoscaler.policies.configured import REPLICA_PREFIX
from autoscaler.ports import Policy

SLOT_S: Final = 0.1
SURGE: Final = 3.0
"""What is asked for at the height, in what one replica serves: enough for starts, moves and stops."""
LONGEST: Final = 60


def rehearse(
    policy: Policy, *, partitions: int, service_rate: float, interval_s: float, done: Callable[[], bool]
) -> int:
    """Let `policy`, which is not used afterwards, meet a surge and its end; return how many decisions it took.

    It ends when the policy has wanted more replicas and fewer, after a minute of intervals, or when `done` says so.
    Plans are carried out at once. What decisions need is compiled then, or read from where it was kept.
    """
    first = f"{REPLICA_PREFIX}-0"
    plan = Plan((first,), dict.fromkeys(range(partitions), first))
    weights = np.arange(1, partitions + 1) / (partitions * (partitions + 1) / 2)  # some partitions get more than others
    seen: set[Action] = set()
    for tick in range(LONGEST):
        if done() or {Action.UP, Action.DOWN} <= seen:
            return tick
        arriving = 0 if Action.UP in seen else min(SURGE, tick / 4) * service_rate * interval_s
        counts = np.floor(arriving * weights).astype(np.int64)
        decision = policy.decide(_observed(tick * interval_s, counts, plan, service_rate, interval_s))
        seen.add(decision.action)
        plan = _placed(decision.plan, partitions)
    return LONGEST


def _observed(
    at_s: float, counts: NDArray[np.int64], plan: Plan, service_rate: float, interval_s: float
) -> GroupObservation:
    """Return what is seen when `counts`, by partition, have just arrived at a group that does as planned."""
    slots = np.zeros((max(1, round(interval_s / SLOT_S)), len(counts)), np.int64)
    slots[-1] = counts
    return GroupObservation(
        at_s=at_s,
        partitions=tuple(PartitionLoad(number, count / interval_s, int(count)) for number, count in enumerate(counts)),
        replicas=tuple(Replica(name, ready=True) for name in plan.replicas),
        assignment=plan.assignment or {},
        service_rate=service_rate,
        rebalance_time_s=0.0,
        recent=RecentArrivals(SLOT_S, slots),
    )


def _placed(plan: Plan, partitions: int) -> Plan:
    """Return the plan; where it leaves placing to the group, with owners in turn."""
    if plan.assignment is not None:
        return plan
    return Plan(plan.replicas, {number: plan.replicas[number % plan.count] for number in range(partitions)})
