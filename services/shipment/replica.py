"""`python -m services.shipment.replica`: one replica of a Shipment group that is scaled as Payment is, by plans.

The same rules as on Faust. It remembers nothing: a payment that is repeated gives the same shipment again, with the
same id, which Notification drops. Its control topics are those of a namespace of its own; what it writes lies beside
what it reads.
"""

import asyncio
import sys

from contracts.connection import Connection
from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from services.common.records import Refusal, decoder, encode
from services.consumer import Event, PlanConsumer, Refused
from services.consumer.environment import topics_of
from services.payment.__main__ import main
from services.payment.pace import Server, ServiceTimes
from services.payment.settings import ReplicaSettings, options_of
from services.shipment.domain import schedule

_decode = decoder(PaymentSettled)


class ShipmentReplica:
    """One replica of the Shipment group. Raises ValueError where it is not told which payments to read."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        read = settings.topic_in(connection.namespace)
        if not read.endswith(Topic.PAYMENTS_SETTLED):
            raise ValueError(f"TAILPACK_TOPIC = {settings.topic!r}: must be a topic {Topic.PAYMENTS_SETTLED}")
        beside = read.removesuffix(Topic.PAYMENTS_SETTLED)
        self._settings = settings
        self._scheduled = beside + Topic.SHIPMENTS_SCHEDULED
        self._server = Server(ServiceTimes(settings))
        self.consumer = PlanConsumer(
            settings.replica,
            connection,
            topics_of(
                connection,
                settings,
                dead_letters=beside + Topic.DEAD_LETTERS,
                stage=Group.SHIPMENT,
                others={read: 1, self._scheduled: 1},
            ),
            self.handle,
            options=options_of(settings),
            busy_s=lambda: self._server.busy_s,
        )

    async def handle(self, event: Event) -> "asyncio.Future[None] | None":
        """Serve one payment: it takes its service time, and its shipment is written if it was accepted."""
        done_us = await self._server.serve(event.received_us, event.key)
        payment = _decode(event.value)
        if isinstance(payment, Refusal):
            raise Refused(*payment.reasons)
        shipment = schedule(payment, done_us)
        if shipment is None:
            return None
        return await self.consumer.send(self._scheduled, shipment.order_id.encode(), encode(shipment))


def shipment(settings: ReplicaSettings, connection: Connection) -> PlanConsumer:
    """Return the consumer of a Shipment replica."""
    return ShipmentReplica(settings, connection).consumer


if __name__ == "__main__":
    sys.exit(main(shipment, "shipment"))
