"""A Kafka consumer library: a plan decides which replicas form the group and which partitions each one owns.

`PlanConsumer` is the entry point. `rebalance` decides a rebalance, `handover` carries it out in a replica, and
`membership` decides when. `poller` polls events, which `fetching` unpacks, into the queues of `partition_queue`.
`server` calls the handlers, and `output` writes outputs and commits offsets. `log_watch` detects a log that was
truncated or re-created. `vitals` collects progress, health and metrics. `environment` creates a consumer from
environment variables. A contract test lists the private names of aiokafka that are used.
"""

from contracts.rebalance_protocol import RebalanceProtocol
from services.consumer.environment import from_environment
from services.consumer.interface import (
    BatchHandler,
    Event,
    Handler,
    Health,
    Listeners,
    OnLogReset,
    Options,
    Refused,
    ReplicaError,
    Topics,
)
from services.consumer.plan_consumer import PlanConsumer

__all__ = [
    "BatchHandler", "Event", "Handler", "Health", "Listeners", "OnLogReset", "Options", "PlanConsumer",
    "RebalanceProtocol", "Refused", "ReplicaError", "Topics", "from_environment",
]  # fmt: skip
