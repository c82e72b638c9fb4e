"""The words that a page uses, each explained in a sentence to somebody who knows Kafka and not this project."""

from typing import Final

SHARED: Final[dict[str, str]] = {
    "promise, target (W)": "so many of the events, in percent, are to be done within so much time, the latency target",
    "latency": "from when the load was meant to send an event (intended) until Payment had done it; a generator or a "
    "group that stands still hides nothing",
    "p99.9": "the latency that 99.9 % of the events do not exceed",
    "replica-minutes": "replicas paid for, added up over time: two replicas for 30 seconds are one replica-minute",
    "bound": "the fewest replicas that hold the events of each second, had all of them been known before, and started, "
    "moved and stopped for nothing; regret is what was paid over it",
}
OF_A_RUN: Final[dict[str, str]] = {
    "requested, ready": "replicas that are paid for, from when they were asked for; and those that can serve",
    "lag": "events that lie in Payment's topic and are not committed yet",
    "plan (epoch)": "which replicas there are and who of them owns which partition; plans are numbered",
    "handover": "a partition gets another owner; only that partition is not served meanwhile",
    "μ, λ": "events per second that one replica serves when it is never idle, and that arrive",
    "cost of an alternative": "predicted replica-seconds, late events at their price included",
    "Rscore": "load that a plan moves to other owners, in replicas that are busy with it; the mean over all plans",
    "effect": "what an order is to cause once: a payment, a parcel, a message",
    "refused": "an event that cannot be handled; a topic of its own (dead letters) takes it instead",
}
COMPARED: Final[dict[str, str]] = {
    "front": "nobody else keeps more in time and costs less (Pareto front)",
    "interval": "where the figure lies in 95 % of 10,000 draws from what was measured; see how far this carries",
    "difference": "one minus the reference for the same seed, or the same seconds: what both suffer cancels out",
    "pp": "percentage points: from 99.5 % to 99.9 % are 0.4 pp",
}


def terms() -> list[tuple[str, str]]:
    """Return word and meaning for the page of a run."""
    return list((SHARED | OF_A_RUN).items())


def compared_terms() -> list[tuple[str, str]]:
    """Return word and meaning for the page of a comparison."""
    return list((SHARED | COMPARED).items())
