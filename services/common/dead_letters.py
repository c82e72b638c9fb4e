"""Where refused records go: one dead letter each, with every reason, and without card numbers."""

import re
from typing import Final

from contracts.events import DeadLetter
from services.common.codec import encode
from services.common.errors import RefusedError
from services.common.identity import letter_id
from services.common.records import Effect, Incoming, now_us

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


def dead_letter(stage: str, topic: str, record: Incoming, refused: RefusedError) -> Effect:
    """Return the dead letter of `record` for `topic`, keyed like the record."""
    payload = (record.value or b"").decode(errors="replace")
    letter = DeadLetter(
        letter_id=letter_id(record.topic, record.partition, record.offset),
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        reasons=tuple(map(mask_cards, refused.reasons)),
        order_id=refused.order_id,
        payload=mask_cards(payload)[:PAYLOAD_LIMIT],
        at_us=now_us(),
    )
    return Effect(id=letter.letter_id, topic=topic, key=record.key, value=encode(letter))
