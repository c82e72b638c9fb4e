"""Where refused records go: one dead letter each, with every reason, and without card numbers.

Payment uses it too, so nothing here imports Faust.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from contracts.clock import now_us
from contracts.events import DeadLetter
from services.common.errors import RefusedError
from services.common.identity import letter_id
from services.common.records import Effect, Incoming

PAYLOAD_LIMIT: Final = 4096
"""Bytes of the refused value that are kept."""
_CARD_DIGITS: Final = re.compile(r"(?:\d[ -]?){11,}\d")


def mask_cards(text: str) -> str:
    """Replace digits by * in runs of twelve or more, spaces and dashes between them allowed; the last four stay."""

    def hide(found: re.Match[str]) -> str:
        run = found.group()
        shown = 0
        masked = []
        for character in reversed(run):
            if character.isdigit():
                shown += 1
                masked.append(character if shown <= 4 else "*")
            else:
                masked.append(character)
        return "".join(reversed(masked))

    return _CARD_DIGITS.sub(hide, text)


class _OrderId(msgspec.Struct):
    order_id: str | None = None


_order_id = msgspec.json.Decoder(_OrderId)


def order_id_in(value: bytes) -> str | None:
    """Return the order id of a record that may be broken otherwise."""
    try:
        return _order_id.decode(value).order_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def letter(
    stage: str,
    *,
    topic: str,
    partition: int,
    offset: int,
    value: bytes | None,
    reasons: Sequence[str],
    order_id: str | None,
    at_us: int,
) -> DeadLetter:
    """Return the letter for one refused record. `topic` as the broker names it, so that a reader finds the record."""
    payload = mask_cards((value or b"")[: 2 * PAYLOAD_LIMIT].decode(errors="replace"))
    return DeadLetter(
        letter_id=letter_id(topic, partition, offset),
        stage=stage,
        topic=topic,
        partition=partition,
        offset=offset,
        reasons=tuple(map(mask_cards, reasons)),
        order_id=order_id,
        payload=payload.encode()[:PAYLOAD_LIMIT].decode(errors="ignore"),
        at_us=at_us,
    )


def dead_letter(stage: str, topic: str, record: Incoming, refused: RefusedError) -> Effect:
    """Return the dead letter of `record` for `topic`, keyed like the record."""
    written = letter(
        stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        value=record.value,
        reasons=refused.reasons,
        order_id=refused.order_id,
        at_us=now_us(),
    )
    return Effect(id=written.letter_id, topic=topic, key=record.key, value=msgspec.json.encode(written))
