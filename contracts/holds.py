"""The control topic: an operator pauses an autoscaler, or pins its number of replicas, for a limited time."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import msgspec

from contracts.fields import Count, Moment, Text

HOLD_VERSION: Final = 1


class Direction(StrEnum):
    """Which changes of the replica count a hold prevents."""

    ALL = "all"  # also moves of partitions
    IN = "scale-in"
    OUT = "scale-out"
    PIN = "pin"  # the group gets exactly `replicas`; partitions may move
    NONE = "none"  # the hold was ended


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the control topic, with the key `plan_key` of the group. The newest record of a key counts."""

    at_us: Moment
    direction: Direction
    until_us: Moment
    """The hold ends by itself at this time, µs since the epoch."""
    replicas: Count = 0
    """Number of replicas of a pin."""
    by: Text = ""
    """User and host of the command."""
    reason: Text = ""
    v: int = HOLD_VERSION

    def is_active(self, now_us: int) -> bool:
        """Return whether the hold applies at this time."""
        return self.direction is not Direction.NONE and now_us < self.until_us

    def __str__(self) -> str:
        subject = {Direction.ALL: "", Direction.PIN: f"pinned at {self.replicas} "}.get(
            self.direction, f"{self.direction} "
        )
        what = subject if self.direction is Direction.PIN else f"{subject}paused "
        until = datetime.fromtimestamp(self.until_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{what}until {until}" + (f" by {self.by}" * bool(self.by)) + (f": {self.reason}" * bool(self.reason))


_decoder: Final = msgspec.json.Decoder(Hold)


def decode_hold(value: bytes) -> Hold:
    """Return a hold. Raises one of `contracts.validation.DECODE_ERRORS`."""
    hold = _decoder.decode(value)
    if hold.v != HOLD_VERSION:
        raise msgspec.ValidationError(f"version {hold.v} is not supported (supported: {HOLD_VERSION})")
    return hold
