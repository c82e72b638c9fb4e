"""`python -m services.order`: orders.placed → payments.requested, and the status of each order."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from contracts.clock import now_us
from contracts.connection import Connection, secret_in
from contracts.events import DEMO_TOKEN_KEY, NotificationSent, OrderStatus, PaymentSettled, Status
from contracts.settings import Rules, Values, must, required, setting
from contracts.topics import Group, Topic, qualified
from contracts.validation import InvalidSettingsError
from partitioners import Partitioner
from services.common.faust_app import ServiceSettings
from services.common.process import main
from services.common.read_back import id_reader
from services.common.records import Effect, Incoming, Refusal, typed_decision
from services.common.service import FETCH_PAUSE_S, Service, StageMemory
from services.order import domain
from services.order.http import OrdersApi
from services.order.status import StatusBoard, notification_status, payment_status, tail_records

MIN_SECRET_LENGTH: Final = 16
log = logging.getLogger("order")


def _secret_file_problem(name: str, values: Values) -> str | None:
    try:
        is_long_enough = not values[name] or len(secret_in(values[name])) >= MIN_SECRET_LENGTH
    except InvalidSettingsError as error:
        return error.problems[0]
    return None if is_long_enough else f"must hold {MIN_SECRET_LENGTH} characters or more"


@dataclass(frozen=True, kw_only=True)
class OrderSettings(ServiceSettings):
    """Settings of Order, from TAILPACK_PARTITIONER, TAILPACK_PAYMENT_PARTITIONS and the variables of all services."""

    payment_partitions: int = required(least=1)
    """Partitions of `payments.requested`."""
    partitioner: Partitioner = setting(Partitioner.KG)
    """Partitioner of `payments.requested`. `explicit`: by the header `partition`, or else by the customer."""
    latency_target_s: float = setting(0.5, "s", above=0)
    """Latency target (W) by which `cg` distinguishes busy partitions."""
    card_token_key_file: str = setting("")
    """File with the secret for the hash of card numbers only, 16 characters or more."""
    api_token_file: str = setting("")
    """File with the bearer token for /orders only, 16 characters or more. Empty: no authentication."""
    demo: bool = setting(False)
    """Orders are invented, so the secret for card tokens is public."""

    RULES: ClassVar[Rules] = (
        *((name, partial(_secret_file_problem, name)) for name in ("card_token_key_file", "api_token_file")),
        must(
            "demo",
            lambda of: of["demo"] or of["card_token_key_file"],
            f"card tokens need a secret; set TAILPACK_CARD_TOKEN_KEY_FILE to a file of {MIN_SECRET_LENGTH} random "
            "characters or more, or TAILPACK_DEMO=true where no card is real",
        ),
    )

    @property
    def token_key(self) -> str:
        """The configured key of card tokens."""
        return secret_in(self.card_token_key_file) if self.card_token_key_file else DEMO_TOKEN_KEY


def build(connection: Connection, settings: OrderSettings) -> Service:
    """Return the service, configured but not started."""
    routing = domain.Routing(settings.partitioner, settings.payment_partitions, settings.latency_target_s, os.getpid())

    def on_settled(payment: PaymentSettled) -> Iterator[Effect]:
        routing.record_wait(payment)
        return board.apply_update(payment_status(payment))

    def on_notified(sent: NotificationSent) -> Iterator[Effect]:
        return board.apply_update(notification_status(sent))

    status_inputs = {
        Topic.PAYMENTS_SETTLED: typed_decision(PaymentSettled, on_settled),
        Topic.NOTIFICATIONS_SENT: typed_decision(NotificationSent, on_notified),
    }
    board = StatusBoard(qualified(connection.namespace, Topic.ORDERS_STATUS))
    service = Service(
        domain.STAGE,
        connection,
        Group.ORDER,
        settings,
        inputs=(Topic.ORDERS_PLACED, *status_inputs),
        outputs={Topic.PAYMENTS_REQUESTED: id_reader("order_id", domain.payment_effect_id)},
        memory=StageMemory(Topic.ORDERS_STATUS, tail_records(settings.pipeline_partitions), board.remember),
        payment_partitions=settings.payment_partitions,
        background=status_inputs,
        pause_s=FETCH_PAUSE_S,
    )
    target = service.topic_name(Topic.PAYMENTS_REQUESTED)
    token_key = settings.token_key

    def accept(record: Incoming) -> Iterator[Effect | Refusal]:
        outcome = domain.accept_order(record, routing, token_key, now_us())
        if isinstance(outcome, Refusal):
            yield from board.reject(outcome.order_id, outcome.reasons)
            yield outcome
            return
        order, request = outcome.order, outcome.request
        effect_id = domain.payment_effect_id(order.order_id)
        yield Effect(effect_id, target, order.order_id.encode(), outcome.request_value, outcome.partition)
        status = OrderStatus(
            order_id=order.order_id,
            status=Status.ACCEPTED,
            at_us=request.timeline.accepted_us or 0,
            fingerprint=domain.fingerprint(order, token_key),
        )
        yield from board.apply_update(status)

    service.consume(Topic.ORDERS_PLACED, accept)
    for topic, decide in status_inputs.items():
        service.consume(topic, decide)
    api_token = secret_in(settings.api_token_file) if settings.api_token_file else ""
    if not api_token and settings.http_port and not settings.demo:
        log.warning("Any client that reaches the port may place orders; set TAILPACK_API_TOKEN_FILE to require a token")
    service.routes = OrdersApi(service, board, token_key, api_token).routes()
    return service


if __name__ == "__main__":
    main("order", os.environ, OrderSettings, build)
