"""A Kafka consumer that obeys a plan: which replicas form the group, who owns which partition. Knows no payments.

`PlanConsumer` is the library; docs/reference/consumer-api.md explains it. `rounds` decides a rebalance, `handover`
carries it out in a replica, `membership` says when. `poller` polls events into the queues of `partition_queue`,
`server` serves them and describes what failed; `output` writes what comes of them and commits what is done.
`log_watch` sees that the log is still the one that was read; `vitals` is what a replica tells of itself; `environment`
makes a consumer of variables. A contract test lists what is used of aiokafka beyond its documentation.
"""

from contracts.delivery import Delivery
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
    "BatchHandler", "Delivery", "Event", "Handler", "Health", "Listeners", "OnLogReset", "Options", "PlanConsumer",
    "Refused", "ReplicaError", "Topics", "from_environment",
]  # fmt: skip
