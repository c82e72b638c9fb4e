"""The ways in which the Payment group shares its partitions and takes on a new plan, by the names used everywhere."""

from enum import StrEnum
from typing import Final


class RebalanceProtocol(StrEnum):
    """How a plan reaches the replicas, and what stops while it does. All replicas of a group use the same."""

    INCREMENTAL = "incremental"  # our consumer: only the partitions that move stop being served
    EAGER = "eager"  # our consumer: every round stops every replica, and one round is enough
    COOPERATIVE_STICKY = "cooperative-sticky"
    """confluent-kafka, classic protocol, incremental cooperative rebalancing (KIP-429)."""
    KIP848 = "kip848"
    """confluent-kafka, consumer protocol: the broker assigns (KIP-848)."""
    SHARE = "share"  # share group: any replica takes events of any partition, in no order (KIP-932). Only simulated


class Guarantee(StrEnum):
    """How often an event has its effect, whatever ends in mid-work; Kafka Streams calls it processing.guarantee."""

    AT_LEAST_ONCE = "at_least_once"  # outputs are written at once; who reads them drops repeats by their ids
    EXACTLY_ONCE = "exactly_once"
    """Outputs and offsets are written in one transaction: who reads with read_committed sees each once."""


PLAN_PROTOCOLS: Final = (RebalanceProtocol.INCREMENTAL, RebalanceProtocol.EAGER)
"""Rebalance protocols of our own consumer, which follows plans that name the owner of each partition."""
RUNTIMES: Final = (RebalanceProtocol.COOPERATIVE_STICKY, RebalanceProtocol.KIP848)
"""Other clients that can do Payment's work. They place the partitions themselves: plans are counts only."""
