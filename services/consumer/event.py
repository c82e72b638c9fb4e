"""What a replica hands to its service, and what it gets back."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the input topic, as served."""

    topic: str
    """As the broker names it, namespace included."""
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    received_us: int
    """When it was polled (µs since the epoch)."""
    epoch: int
    """Plan epoch that the assignment was made from; 0 without a plan."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write before the event counts as done. Topic without the run's namespace."""

    topic: str
    key: bytes | None
    value: bytes


Handler = Callable[[Event, int], Outgoing]
"""Event and the time its service ended (µs since the epoch) → what to write. Never raises for bad input."""
