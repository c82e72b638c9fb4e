"""The status of the newest orders, in memory. Each change is written to a topic.

When the service starts, it reads the newest records of that topic, so the time of a start does not depend on the number
of old orders. Shipments are not consumed, because one more topic would cost 8 % of a core at 120 orders/s. The
notification arrives some 10 ms after the shipment and contains its id.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from contracts.clock import now_us
from contracts.events import MAX_ID_LENGTH, NotificationSent, OrderStatus, PaymentSettled, Status
from services.common.records import Effect, encode, mask_cards

MAX_ORDERS: Final = 100_000  # with their status, oldest dropped first; about 40 MB
KEY_WINDOW_S: Final = 1800
"""How long a placed order is recognised when its request is repeated."""
MAX_OLD_ORDERS: Final = 150_000
"""Older orders that are recognised within KEY_WINDOW_S, without status (20 MB); above 138 orders/s for less time."""
RECORDS_PER_ORDER: Final = 3  # accepted, settled, notified
_RANK: Final = {status: rank for rank, status in enumerate(Status)}
_HASH_MASK: Final = 2**64 - 1
_decode = msgspec.json.Decoder(OrderStatus).decode


def tail_records(partitions: int) -> int:
    """Return how many records a start reads from each partition of the topic. They cover all orders to remember."""
    return RECORDS_PER_ORDER * (MAX_ORDERS + MAX_OLD_ORDERS) // partitions


def next_status(current: OrderStatus | None, update: OrderStatus) -> OrderStatus | None:
    """Return the status after `update`; None if nothing changes.

    An update may be old, because topics are read in parallel and again after a crash. A status never goes back.
    """
    if current is None:
        return update
    if _RANK[update.status] <= _RANK[current.status]:
        return None
    return msgspec.structs.replace(
        update,
        payment_accepted=current.payment_accepted if update.payment_accepted is None else update.payment_accepted,
        shipment_id=update.shipment_id or current.shipment_id,
        fingerprint=update.fingerprint or current.fingerprint,
    )


def payment_status(payment: PaymentSettled) -> OrderStatus:
    """Return the status that a settled payment gives its order."""
    return OrderStatus(
        order_id=payment.order_id,
        status=Status.SETTLED if payment.accepted else Status.DECLINED,
        at_us=payment.timeline.done_us or 0,
        payment_accepted=payment.accepted,
    )


def notification_status(notification: NotificationSent) -> OrderStatus:
    """Return the status that a notification gives its order. That status includes all earlier stages."""
    return OrderStatus(
        order_id=notification.order_id,
        status=Status.NOTIFIED,
        at_us=notification.timeline.notified_us or 0,
        payment_accepted=notification.accepted,
        shipment_id=notification.shipment_id,
    )


class StatusBoard:
    """The status of the newest orders. A change returns the records that persist it."""

    def __init__(self, topic: str, max_orders: int = MAX_ORDERS) -> None:
        self._topic, self._max_orders = topic, max_orders
        self._store: dict[bytes, bytes] = {}
        self._old: dict[int, int] = {}
        """Hash of an order id → its time (epoch µs), shifted by 64 bits, plus the hash of its content. Oldest first."""

    def __getitem__(self, order_id: str) -> OrderStatus:
        """Return the status of an order. Raises KeyError for an unknown one."""
        return _decode(self._store[order_id.encode()])

    def is_repeat(self, order_id: str, fingerprint: str, at_us: int) -> bool | None:
        """Return whether a recent order has this content. None: it was rejected, or its id or content is unknown."""
        if value := self._store.get(order_id.encode()):
            status = _decode(value)
            is_known = status.fingerprint and status.status is not Status.REJECTED
            return status.fingerprint == fingerprint if is_known else None
        old = self._old.get(hash(order_id), 0)
        is_unknown = not old or at_us - (old >> 64) > KEY_WINDOW_S * 1_000_000
        return None if is_unknown else (old ^ hash(fingerprint)) & _HASH_MASK == 0

    def apply_update(self, update: OrderStatus) -> Iterator[Effect]:
        """Apply an update, and yield the record that restores it after a restart."""
        key = update.order_id.encode()
        current = self._store.get(key)
        status = next_status(_decode(current) if current else None, update)
        if status is not None:
            value = encode(status)
            self._store_status(key, value)
            yield Effect(None, self._topic, key, value)

    def remember(self, record: Any) -> None:
        """Apply a record of the topic. Raises UNDECODABLE if it is not a status."""
        update = _decode(record.value)
        key = update.order_id.encode()
        current = self._store.get(key)
        if current is None or next_status(_decode(current), update) is not None:
            self._store_status(key, record.value)

    def _store_status(self, key: bytes, value: bytes) -> None:
        self._store[key] = value
        if len(self._store) > self._max_orders:
            old = _decode(self._store.pop(next(iter(self._store))))
            if old.fingerprint and old.status is not Status.REJECTED:
                self._old[hash(old.order_id)] = old.at_us << 64 | hash(old.fingerprint) & _HASH_MASK
            if len(self._old) > MAX_OLD_ORDERS:
                del self._old[next(iter(self._old))]

    def reject(self, order_id: str | None, reasons: tuple[str, ...]) -> Iterator[Effect]:
        """Record that an order was refused. An order without a usable id gets no status."""
        if order_id and len(order_id) <= MAX_ID_LENGTH and order_id.isprintable():
            masked = tuple(map(mask_cards, reasons))
            rejected = OrderStatus(order_id=order_id, status=Status.REJECTED, at_us=now_us(), reasons=masked)
            yield from self.apply_update(rejected)
