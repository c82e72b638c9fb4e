"""Shipment on Faust: payments.settled → shipments.scheduled."""

from collections.abc import Iterator

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from services.common.app import consume
from services.common.assembly import assemble
from services.common.codec import decoder, encode, identity_in
from services.common.records import Effect, Incoming
from services.common.service import Service
from services.common.settings import ServiceSettings
from services.shipment.domain import STAGE, schedule


def build(connection: Connection, settings: ServiceSettings) -> Service:
    """Return the service, wired and not started."""
    service = assemble(
        STAGE,
        connection,
        Group.SHIPMENT,
        settings,
        inputs=(Topic.PAYMENTS_SETTLED,),
        outputs={Topic.SHIPMENTS_SCHEDULED: identity_in("shipment_id")},
    )
    decode = decoder(PaymentSettled)
    target = service.named(Topic.SHIPMENTS_SCHEDULED)

    def ship(record: Incoming) -> Iterator[Effect]:
        shipment = schedule(decode(record), now_us())
        if shipment is not None:
            yield Effect(shipment.shipment_id, target, shipment.order_id.encode(), encode(shipment))

    consume(service.app, service.named(Topic.PAYMENTS_SETTLED), service.stage, ship)
    return service
