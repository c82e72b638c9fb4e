"""What is known of each order: a Faust table, held in memory, kept in a changelog topic.

Shipments are not read: each topic followed costs 8 % of a core at 120 orders/s, and the notification comes some 10 ms
after the shipment and tells of it.
"""

from collections.abc import Iterator, MutableMapping
from enum import StrEnum
from typing import Final

import msgspec

from contracts.clock import now_us
from contracts.events import MAX_ID_LENGTH, NotificationSent, PaymentSettled
from services.common.records import Effect, encode

MAX_ORDERS: Final = 200_000
"""Orders kept, the oldest dropped first: some 80 MB."""


class Status(StrEnum):
    """How far an order has come."""

    REJECTED = "rejected"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    SETTLED = "settled"
    NOTIFIED = "notified"


_RANK: Final = {status: rank for rank, status in enumerate(Status)}


class OrderStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Value of the table, and answer to GET /orders/{id}."""

    order_id: str
    status: Status
    at_us: int
    """When the stage that told us stamped it."""
    payment_accepted: bool | None = None
    shipment_id: str | None = None
    reasons: tuple[str, ...] = ()
    """Why it was rejected."""
    fingerprint: str = ""
    """Of what was ordered; see domain.fingerprint."""


_decode = msgspec.json.Decoder(OrderStatus).decode


def advanced(known: OrderStatus | None, news: OrderStatus) -> OrderStatus | None:
    """Return what is known after `news`; None where they change nothing.

    Topics are read side by side and again after a crash, so news may be old: an order never goes back.
    """
    if known is None:
        return news
    if _RANK[news.status] <= _RANK[known.status]:
        return None
    return msgspec.structs.replace(
        news,
        payment_accepted=known.payment_accepted if news.payment_accepted is None else news.payment_accepted,
        shipment_id=news.shipment_id or known.shipment_id,
        fingerprint=news.fingerprint or known.fingerprint,
    )


def of_payment(payment: PaymentSettled) -> OrderStatus:
    """Return the news in a settled payment."""
    return OrderStatus(
        order_id=payment.order_id,
        status=Status.SETTLED if payment.accepted else Status.DECLINED,
        at_us=payment.timeline.done_us or 0,
        payment_accepted=payment.accepted,
    )


def of_notification(notification: NotificationSent) -> OrderStatus:
    """Return the news in a notification, which tells of all stages before it."""
    return OrderStatus(
        order_id=notification.order_id,
        status=Status.NOTIFIED,
        at_us=notification.timeline.notified_us or 0,
        payment_accepted=notification.accepted,
        shipment_id=notification.shipment_id,
    )


class StatusBoard:
    """The table. Reading is free; a change returns the changelog records that make it last."""

    def __init__(self, store: MutableMapping[bytes, bytes], changelog: str, max_orders: int = MAX_ORDERS) -> None:
        self._store = store
        self._changelog = changelog
        self._max_orders = max_orders

    def __getitem__(self, order_id: str) -> OrderStatus:
        """Return the status of an order. Raises KeyError for an unknown one."""
        return _decode(self._store[order_id.encode()])

    def learn(self, news: OrderStatus) -> Iterator[Effect]:
        """Take the news in, and yield what must be written for them to survive a restart."""
        key = news.order_id.encode()
        known = self._store.get(key)
        status = advanced(_decode(known) if known else None, news)
        if status is None:
            return
        value = self._store[key] = encode(status)
        yield Effect(None, self._changelog, key, value)
        if len(self._store) > self._max_orders:
            oldest = next(iter(self._store))
            del self._store[oldest]
            yield Effect(None, self._changelog, oldest, None)

    def reject(self, order_id: str | None, reasons: tuple[str, ...]) -> Iterator[Effect]:
        """Take in that an order was refused. One without a usable id has no status to be asked for."""
        if order_id and len(order_id) <= MAX_ID_LENGTH and order_id.isprintable():
            news = OrderStatus(order_id=order_id, status=Status.REJECTED, at_us=now_us(), reasons=reasons)
            yield from self.learn(news)
