"""A Kafka consumer that obeys a plan: which replicas form the group, who owns which partition. Knows no payments.

`PlanConsumer` is the library; docs/consumer.md shows a service of its own. `rounds` decides a rebalance, `handover`
carries it out in a replica, `membership` says when. `lanes` and `server` handle events, `commits` keeps the promise
that nothing is lost. What is used of aiokafka beyond its documentation is listed in `private_surface`.
"""

from contracts.delivery import Delivery
from services.consumer.clients import Topics
from services.consumer.errors import ReplicaError
from services.consumer.event import BatchHandler, Event, Handler
from services.consumer.handover import Listeners
from services.consumer.plan_consumer import PlanConsumer
from services.consumer.settings import Options

__all__ = [
    "BatchHandler",
    "Delivery",
    "Event",
    "Handler",
    "Listeners",
    "Options",
    "PlanConsumer",
    "ReplicaError",
    "Topics",
]
