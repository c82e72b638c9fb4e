"""Rebalance protocols and delivery guarantees of the Payment group."""

from enum import StrEnum
from typing import Final


class RebalanceProtocol(StrEnum):
    """How the replicas of a group adopt a plan, and which of them pause meanwhile. All must use the same protocol."""

    INCREMENTAL = "incremental"  # our consumer: only partitions that move stop being served
    EAGER = "eager"  # our consumer: each rebalance stops every replica, and one rebalance is enough
    COOPERATIVE_STICKY = "cooperative-sticky"  # confluent-kafka, classic protocol, incremental (KIP-429)
    KIP848 = "kip848"  # confluent-kafka, consumer protocol: the broker assigns (KIP-848)
    RANGE = "range"  # any client, classic protocol: its own assignor; each rebalance stops every replica
    LED_EAGER = "led-eager"  # the same clients; the autoscaler leads the group, so they follow plans
    LED_COOPERATIVE = "led-cooperative"  # the same with clients that rebalance incrementally
    SHARE = "share"  # share group: any replica takes events of any partition, in no order (KIP-932). Only simulated


class Guarantee(StrEnum):
    """How often an event takes effect if a process crashes. Kafka Streams calls this setting processing.guarantee."""

    AT_LEAST_ONCE = "at_least_once"  # outputs are written at once; readers drop repeats by id
    EXACTLY_ONCE = "exactly_once"  # outputs and offsets in one transaction: read_committed sees each output once


PLAN_PROTOCOLS: Final = (RebalanceProtocol.INCREMENTAL, RebalanceProtocol.EAGER)
"""Protocols of our own consumer, which follows plans that name the owner of each partition."""
RUNTIMES: Final = (RebalanceProtocol.COOPERATIVE_STICKY, RebalanceProtocol.KIP848, RebalanceProtocol.RANGE)
"""Protocols of other clients that can run Payment. They assign partitions themselves, so a plan is only a count."""
