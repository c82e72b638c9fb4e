"""`python -m services.shipment`: payments.settled → shipments.scheduled."""

import os
from collections.abc import Iterator

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from services.common.faust_app import ServiceSettings
from services.common.fence import Fence, fenced_decision
from services.common.process import main
from services.common.read_back import id_reader
from services.common.records import Effect, encode
from services.common.service import FETCH_PAUSE_S, Service
from services.shipment.domain import STAGE, schedule


def build(connection: Connection, settings: ServiceSettings) -> Service:
    """Return the service, configured but not started."""
    fence = Fence()
    service = Service(
        STAGE,
        connection,
        Group.SHIPMENT,
        settings,
        inputs=(Topic.PAYMENTS_SETTLED,),
        outputs={Topic.SHIPMENTS_SCHEDULED: id_reader("shipment_id")},
        fence=fence,
        pause_s=FETCH_PAUSE_S,
    )
    target = service.topic_name(Topic.SHIPMENTS_SCHEDULED)

    def ship(payment: PaymentSettled) -> Iterator[Effect]:
        shipment = schedule(payment, now_us())
        if shipment is not None:
            yield Effect(shipment.shipment_id, target, shipment.order_id.encode(), encode(shipment))

    service.consume(Topic.PAYMENTS_SETTLED, fenced_decision(fence, ship))
    return service


if __name__ == "__main__":
    main("shipment", os.environ, ServiceSettings, build)
