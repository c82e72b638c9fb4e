"""Order on Faust: orders.placed → payments.requested, and a table of what became of each order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import faust

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import DEMO_TOKEN_KEY, Grouping, NotificationSent, PaymentSettled
from contracts.settings import required, setting
from contracts.topics import PIPELINE_PARTITIONS, Group, Topic
from services.common.faust_app import ServiceSettings
from services.common.once import identity_in
from services.common.records import Effect, Incoming, Refusal, decoded, encode
from services.common.service import Service
from services.order import domain
from services.order.http import OrdersApi
from services.order.status import OrderStatus, Status, StatusBoard, of_notification, of_payment

CHANGELOG_RETENTION_S: Final = 7 * 24 * 3600


@dataclass(frozen=True, kw_only=True)
class OrderSettings(ServiceSettings):
    """Environment: TAILPACK_GROUPING, TAILPACK_PAYMENT_PARTITIONS and those that every service has."""

    payment_partitions: int = required(least=1)
    """Partitions of payments.requested."""
    grouping: Grouping = setting(Grouping.KEY)
    """key: by the customer's hash. explicit: by the header `partition`, by the customer's hash without one."""
    card_token_key: str = setting(DEMO_TOKEN_KEY)
    """Secret of the keyed hash that turns card numbers into tokens."""


def build(connection: Connection, settings: OrderSettings) -> Service:
    """Return the service, wired and not started."""
    followed = {
        Topic.PAYMENTS_SETTLED: decoded(PaymentSettled, lambda payment: board.learn(of_payment(payment))),
        Topic.NOTIFICATIONS_SENT: decoded(NotificationSent, lambda sent: board.learn(of_notification(sent))),
    }
    service = Service(
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
    token_key = settings.card_token_key

    def accept(record: Incoming) -> Iterator[Effect | Refusal]:
        found = domain.accepted(record, settings.grouping, settings.payment_partitions, token_key, now_us())
        if isinstance(found, Refusal):
            yield from board.reject(found.order_id, found.reasons)
            yield found
            return
        order, request = found.order, found.request
        effect_id = domain.payment_effect_id(order.order_id)
        yield Effect(effect_id, target, order.order_id.encode(), encode(request), found.partition)
        news = OrderStatus(
            order_id=order.order_id,
            status=Status.ACCEPTED,
            at_us=request.timeline.accepted_us or 0,
            fingerprint=domain.fingerprint(order, token_key),
        )
        yield from board.learn(news)

    service.consume(Topic.ORDERS_PLACED, accept)
    for topic, learn in followed.items():
        service.consume(topic, learn)
    service.routes = OrdersApi(service, board, token_key).routes()
    return service


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
