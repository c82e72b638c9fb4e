"""Order on Faust: orders.placed → payments.requested, and a table of what became of each order."""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import faust

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import PARTITION_HEADER, NotificationSent, PaymentSettled, ShipmentScheduled
from contracts.topics import PIPELINE_PARTITIONS, Group, Topic
from services.common.app import consume
from services.common.assembly import assemble
from services.common.codec import decoder, encode, identity_in
from services.common.dead_letters import order_id_in
from services.common.errors import RefusedError
from services.common.records import Effect, Incoming
from services.common.service import Service
from services.common.stage import Decide
from services.order import domain
from services.order.http import OrdersApi
from services.order.settings import OrderSettings
from services.order.status import OrderStatus, Status, StatusBoard, of_notification, of_payment, of_shipment

R = TypeVar("R")
CHANGELOG_RETENTION_S: Final = 7 * 24 * 3600


def build(connection: Connection, settings: OrderSettings) -> Service:
    """Return the service, wired and not started."""
    followed = [Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT]
    if settings.follow_shipments:
        followed.append(Topic.SHIPMENTS_SCHEDULED)
    service = assemble(
        domain.STAGE,
        connection,
        Group.ORDER,
        settings,
        inputs=(Topic.ORDERS_PLACED, *followed),
        outputs={Topic.PAYMENTS_REQUESTED: identity_in("order_id", domain.payment_effect_id)},
        payment_partitions=settings.payment_partitions,
    )
    board = _board(service.app)
    target = service.named(Topic.PAYMENTS_REQUESTED)

    def accept(record: Incoming) -> Iterator[Effect]:
        try:
            order = domain.order_of(record)
            chosen = record.header_number(PARTITION_HEADER)
            partition = domain.payment_partition(order.customer, chosen, settings.grouping, settings.payment_partitions)
            request = domain.payment_request(order, record, settings.card_token_key, now_us())
        except RefusedError as refused:
            order_id = refused.order_id or order_id_in(record.value or b"")
            raise RefusedError(refused.reasons, order_id, tuple(board.reject(order_id, refused.reasons))) from refused
        key = order.order_id.encode()
        yield Effect(domain.payment_effect_id(order.order_id), target, key, encode(request), partition)
        news = OrderStatus(
            order_id=order.order_id,
            status=Status.ACCEPTED,
            at_us=request.timeline.accepted_us or 0,
            fingerprint=domain.fingerprint(order, settings.card_token_key),
        )
        yield from board.learn(news)

    consume(service.app, service.named(Topic.ORDERS_PLACED), service.stage, accept)
    follow = _followers(board)
    for topic in followed:
        consume(service.app, service.named(topic), service.stage, follow[topic])
    service.routes = OrdersApi(service, board, settings).routes()
    return service


def _followers(board: StatusBoard) -> dict[Topic, Decide]:
    """Return how the board learns from each topic of the later stages."""

    def learn_from(decode: Callable[[Incoming], R], news: Callable[[R], OrderStatus]) -> Decide:
        return lambda record: board.learn(news(decode(record)))

    return {
        Topic.PAYMENTS_SETTLED: learn_from(decoder(PaymentSettled), of_payment),
        Topic.SHIPMENTS_SCHEDULED: learn_from(decoder(ShipmentScheduled), of_shipment),
        Topic.NOTIFICATIONS_SENT: learn_from(decoder(NotificationSent), of_notification),
    }


def _board(app: faust.App) -> StatusBoard:
    """Return the status table. Its changelog is written by the stage, which acknowledges input only after it."""
    name = f"{app.conf.id}-orders-changelog"
    changelog = app.topic(
        name,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=PIPELINE_PARTITIONS,
        replicas=-1,  # the broker's default
        retention=CHANGELOG_RETENTION_S,
        compacting=True,
        deleting=True,
        acks=False,
        internal=True,
        maxsize=131_072,
        allow_empty=True,
    )
    table = app.Table(
        "orders", key_type=bytes, value_type=bytes, partitions=PIPELINE_PARTITIONS, changelog_topic=changelog
    )
    return StatusBoard(table.data, name)
