"""Order on Faust: orders.placed → payments.requested, and a memory of what became of each order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import DEMO_TOKEN_KEY, Grouping, NotificationSent, OrderStatus, PaymentSettled, Status
from contracts.settings import Rule, Values, required, setting
from contracts.topics import Group, Topic, qualified
from services.common.faust_app import ServiceSettings
from services.common.read_back import identity_in
from services.common.records import Effect, Incoming, Refusal, decoded, encode
from services.common.service import Kept, Service
from services.order import domain
from services.order.http import OrdersApi
from services.order.status import TAIL, StatusBoard, of_notification, of_payment

MIN_KEY_LENGTH: Final = 16


@dataclass(frozen=True, kw_only=True)
class OrderSettings(ServiceSettings):
    """Environment: TAILPACK_GROUPING, TAILPACK_PAYMENT_PARTITIONS and those that every service has."""

    payment_partitions: int = required(least=1)
    """Partitions of payments.requested."""
    grouping: Grouping = setting(Grouping.KEY)
    """key: by the customer's hash. explicit: by the header `partition`, by the customer's hash without one."""
    card_token_key: str = setting("")
    """Secret of the keyed hash that turns card numbers into tokens, of 16 characters or more."""
    demo: bool = setting(False)
    """Whether these orders are made up: card numbers then get tokens of a key that everybody knows."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the base's rules and: real cards need a secret."""
        return (*super().rules(), ("demo", _secret))

    @property
    def token_key(self) -> str:
        """The key that is used."""
        return self.card_token_key or DEMO_TOKEN_KEY


def _secret(values: Values) -> str | None:
    """Say what to do where the key is none. The key itself is never told: this is said of another setting."""
    key = values["card_token_key"]
    if values["demo"] or (len(key) >= MIN_KEY_LENGTH and key != DEMO_TOKEN_KEY):
        return None
    return (
        f"card tokens need a secret; set TAILPACK_CARD_TOKEN_KEY to {MIN_KEY_LENGTH} random characters or more, "
        "or TAILPACK_DEMO=true where no card is real"
    )


def build(connection: Connection, settings: OrderSettings) -> Service:
    """Return the service, wired and not started."""
    followed = {
        Topic.PAYMENTS_SETTLED: decoded(PaymentSettled, lambda payment: board.learn(of_payment(payment))),
        Topic.NOTIFICATIONS_SENT: decoded(NotificationSent, lambda sent: board.learn(of_notification(sent))),
    }
    board = StatusBoard(qualified(connection.namespace, Topic.ORDERS_STATUS))
    service = Service(
        domain.STAGE,
        connection,
        Group.ORDER,
        settings,
        inputs=(Topic.ORDERS_PLACED, *followed),
        outputs={Topic.PAYMENTS_REQUESTED: identity_in("order_id", domain.payment_effect_id)},
        kept=Kept(Topic.ORDERS_STATUS, TAIL, board.remember),
        payment_partitions=settings.payment_partitions,
    )
    target = service.named(Topic.PAYMENTS_REQUESTED)
    token_key = settings.token_key

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
