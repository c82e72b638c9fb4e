"""Deterministic ids: a repeat of the same work carries the same id, whoever does it and when."""

import uuid
from typing import Final

_NAMESPACE: Final = uuid.UUID("6f0c3a52-5a0b-5c8e-9d0a-7461696c7061")


def effect_id(order_id: str, stage: str) -> str:
    """Return the id of what `stage` does for an order: uuid5 of both, the same in every process and every run."""
    return str(uuid.uuid5(_NAMESPACE, f"{stage}/{order_id}"))


def letter_id(topic: str, partition: int, offset: int) -> str:
    """Return the id of the dead letter for one refused record: where the record lies."""
    return f"{topic}/{partition}/{offset}"
