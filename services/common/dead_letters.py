"""Where refused records go: one dead letter each, with every reason, and without card numbers."""

import re
from typing import Final, Protocol

from contracts.events import DeadLetter
from services.common.records import Refusal

PAYLOAD_LIMIT: Final = 4096
"""Bytes of the refused value that are kept."""
_CARD_DIGITS: Final = re.compile(r"(?:\d[ -]?){11,}\d")


class Record(Protocol):
    """What is known of any refused record, whichever client read it."""

    @property
    def topic(self) -> str:
        """As the broker names it, so that a reader finds the record."""
        ...

    @property
    def partition(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102


def dead_letter(stage: str, record: Record, refusal: Refusal, at_us: int) -> DeadLetter:
    """Return the letter that tells why `stage` refused `record`."""
    payload = mask_cards((record.value or b"")[: 2 * PAYLOAD_LIMIT].decode(errors="replace"))
    return DeadLetter(
        letter_id=f"{record.topic}/{record.partition}/{record.offset}",
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        reasons=tuple(map(mask_cards, refusal.reasons)),
        order_id=refusal.order_id,
        payload=payload.encode()[:PAYLOAD_LIMIT].decode(errors="ignore"),
        at_us=at_us,
    )


def mask_cards(text: str) -> str:
    """Replace digits by * in runs of twelve or more, spaces and dashes between them allowed; the last four stay."""

    def hide(found: re.Match[str]) -> str:
        run = found.group()
        digits_after = sum(map(str.isdigit, run))
        masked = []
        for character in run:
            is_digit = character.isdigit()
            masked.append("*" if is_digit and digits_after > 4 else character)
            digits_after -= is_digit
        return "".join(masked)

    return _CARD_DIGITS.sub(hide, text)
