"""What is written about an event that has failed for good."""

from typing import Final

from contracts.topics import DEFAULT_LARGEST
from services.common.dead_letters import KEY_LIMIT, LETTER_LIMIT, dead_letter, letter_key
from services.common.records import Refusal, encode, order_id_in
from services.consumer.interface import Event, Refused

TOLD_LIMIT: Final = 1000
"""Characters of an exception's text that are told."""


def letter(
    stage: str, event: Event, wrong: Exception, at_us: int, room: int = DEFAULT_LARGEST
) -> tuple[bytes | None, bytes]:
    """Return key and value of an event's dead letter: its reasons are those of a Refused, else what was raised.

    room: bytes that both may have together. Where little, the event's value is left out.
    """
    reasons = wrong.reasons if isinstance(wrong, Refused) and wrong.reasons else (told(wrong),)
    refusal = Refusal(reasons, order_id_in(event.value))
    bare = room < LETTER_LIMIT + KEY_LIMIT
    return letter_key(event.key), encode(dead_letter(stage, event, refusal, at_us, bare=bare))


def told(wrong: Exception) -> str:
    """Return type and text of an exception, cut, whatever it is made of."""
    try:
        return f"{type(wrong).__name__}: {wrong}"[:TOLD_LIMIT].encode(errors="replace").decode()
    except Exception:  # an exception whose own text cannot be had
        return type(wrong).__name__
