"""The state of the newest orders, in memory; each change is written to a topic, whose end is read at a start.

So a start takes as long as reading that end, however many orders there were before. Shipments are not followed: each
topic costs 8 % of a core at 120 orders/s, and the notification comes some 10 ms after the shipment and tells of it.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from contracts.clock import now_us
from contracts.events import MAX_ID_LENGTH, NotificationSent, OrderStatus, PaymentSettled, Status
from services.common.records import Effect, encode

MAX_ORDERS: Final = 100_000  # orders kept, the oldest dropped first: some 40 MB
CHANGES: Final = 3  # records that an order usually has in the topic: accepted, settled, notified
_RANK: Final = {status: rank for rank, status in enumerate(Status)}


_decode = msgspec.json.Decoder(OrderStatus).decode


def tail(partitions: int) -> int:
    """Return how many records are read at a start from each partition of the topic: as many as MAX_ORDERS have."""
    return CHANGES * MAX_ORDERS // partitions


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
    """The newest orders. Reading is free; a change returns the records that make it last."""

    def __init__(self, topic: str, max_orders: int = MAX_ORDERS) -> None:
        self._topic = topic
        self._max_orders = max_orders
        self._store: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self._store)

    def __getitem__(self, order_id: str) -> OrderStatus:
        """Return the status of an order. Raises KeyError for an unknown one."""
        return _decode(self._store[order_id.encode()])

    def learn(self, news: OrderStatus) -> Iterator[Effect]:
        """Take the news in, and yield what must be written for them to survive a restart."""
        key = news.order_id.encode()
        known = self._store.get(key)
        status = advanced(_decode(known) if known else None, news)
        if status is not None:
            value = encode(status)
            self._keep(key, value)
            yield Effect(None, self._topic, key, value)

    def remember(self, record: Any) -> None:
        """Take in a record of the topic. Raises DECODE_ERRORS for one that is no status."""
        news = _decode(record.value)
        key = news.order_id.encode()
        known = self._store.get(key)
        if known is None or advanced(_decode(known), news) is not None:
            self._keep(key, record.value)

    def _keep(self, key: bytes, value: bytes) -> None:
        self._store[key] = value
        if len(self._store) > self._max_orders:
            del self._store[next(iter(self._store))]

    def reject(self, order_id: str | None, reasons: tuple[str, ...]) -> Iterator[Effect]:
        """Take in that an order was refused. One without a usable id has no status to be asked for."""
        if order_id and len(order_id) <= MAX_ID_LENGTH and order_id.isprintable():
            news = OrderStatus(order_id=order_id, status=Status.REJECTED, at_us=now_us(), reasons=reasons)
            yield from self.learn(news)
