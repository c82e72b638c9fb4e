"""The words that a page uses, each explained in a sentence to somebody who knows Kafka and not this project."""

from typing import Final

PROMISE: Final = "promise, target (W)"
P99: Final = "p50, p99, p99.9 …"
REPLICA_MINUTES: Final = "replica-minutes"
BOUND: Final = "bound"
SEED: Final = "seed"

_MEANINGS: Final[dict[str, str]] = {
    PROMISE: "so many of the events, in percent, are to be done within so much time, the latency target W",
    "latency": "from when the load was meant to send an event (intended) until Payment had done it; a generator or a "
    "group that stands still hides nothing",
    "late": "not done within the target, or never done",
    P99: "the latency that 50 %, 99 %, 99.9 % … of the events do not exceed",
    "replica": "one process that serves Payment's partitions, one event at a time; a member of its consumer group",
    "requested, ready": "replicas that are paid for, from when they were asked for; and those that can serve",
    REPLICA_MINUTES: "replicas paid for, added up over time: two replicas for 30 seconds are one replica-minute",
    BOUND: "the fewest replicas that hold the events of each second, had all of them been known before, and started, "
    "moved and stopped for nothing. A run that is late, or lets events wait for a quieter second, can cost less",
    "regret": "what was paid over the bound, in percent of the bound",
    "lag": "events that lie in Payment's topic and are not committed yet",
    "plan, epoch": "which replicas there are and who of them owns which partition; epochs number the plans",
    "up, down, reassign": "a plan with more replicas, with fewer, with as many and other owners",
    "handover, moved": "a partition that gets another owner; only that partition is not served meanwhile",
    "μ": "events per second that one replica serves when it is never idle; reasons compute with a share of it (μ·0.9)",
    "spell": "late events of one cause on one partition, with at most 2 s between one and the next",
    "Rscore": "load that a plan moves to other owners, in replicas that are busy with it; the mean over all plans",
    "effect": "what an order is to cause once: a payment, a parcel, a message",
    "refused, dead letter": "an event that cannot be handled; a topic of its own takes it instead",
    "generator late": "how long after the intended time the load was sent; too long, and the run is not valid",
    SEED: "the number from which all chance of the load comes: equal seeds, equal events",
    "scenario, policy": "the load with its promise; and the rule that decides on replicas and their partitions",
}
_COMPARED: Final[dict[str, str]] = {
    "in time": "share of the events that were done within the target",
    "on the front": "nobody else keeps more in time and costs less (Pareto front)",
    "interval": "where the figure lies in 95 % of 10,000 draws from what was measured; see how far this carries",
    "paired difference": "one minus the reference for the same seed, or the same seconds: what both suffer cancels out",
    "pp": "percentage points: from 99.5 % to 99.9 % are 0.4 pp",
}
_IN_BOTH: Final = (PROMISE, P99, REPLICA_MINUTES, BOUND, SEED)


def terms() -> list[tuple[str, str]]:
    """Return word and meaning for the page of a run, in the order in which the page uses them."""
    return list(_MEANINGS.items())


def compared_terms() -> list[tuple[str, str]]:
    """Return word and meaning for the page of a comparison."""
    return [*((word, _MEANINGS[word]) for word in _IN_BOTH), *_COMPARED.items()]
