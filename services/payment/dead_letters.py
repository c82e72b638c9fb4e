"""What Payment refuses: the record, the reasons, and where it lay."""

import re
from typing import Final

import msgspec

from contracts.events import DeadLetter
from contracts.topics import Topic
from services.consumer.event import Event

PAYLOAD_BYTES: Final = 4096
STAGE: Final = "payment"
_LONG_NUMBER: Final = re.compile(r"(?:\d[ -]?){11,18}\d")
"""What could be a card number: 12 to 19 digits, perhaps in groups."""


class _Named(msgspec.Struct):
    order_id: str | None = None


def masked(text: str) -> str:
    """Replace the digits of everything that could be a card number, except the last four."""
    return _LONG_NUMBER.sub(lambda found: re.sub(r"\d", "*", found[0][:-4]) + found[0][-4:], text)


def dead_letter(event: Event, reasons: tuple[str, ...], at_us: int) -> DeadLetter:
    """Return the letter for a refused event. Its id follows from where the event lay, so a repeat is recognised."""
    value = event.value or b""
    try:
        order_id = msgspec.json.decode(value, type=_Named).order_id
    except (msgspec.DecodeError, RecursionError):
        order_id = None
    return DeadLetter(
        letter_id=f"{Topic.PAYMENTS_REQUESTED}-{event.partition}-{event.offset}",
        stage=STAGE,
        topic=Topic.PAYMENTS_REQUESTED,
        partition=event.partition,
        offset=event.offset,
        reasons=reasons,
        order_id=order_id,
        payload=masked(value[: 2 * PAYLOAD_BYTES].decode(errors="replace"))
        .encode()[:PAYLOAD_BYTES]
        .decode(errors="ignore"),
        at_us=at_us,
    )
