"""The control topic: an operator pauses an autoscaler, or pins its number of replicas, for a limited time."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import msgspec

from contracts.fields import Count, Moment, Text
from contracts.plan import plan_key

HOLD_VERSION: Final = 1
REMOVED_US: Final = 10**16
"""End of a hold that does not end by itself: an annotation."""


class Direction(StrEnum):
    """Which changes of the replica count a hold prevents."""

    ALL = "all"  # also moves of partitions
    IN = "scale-in"
    OUT = "scale-out"
    PIN = "pin"  # the group gets exactly `replicas`; partitions may move
    NONE = "none"  # the hold was ended
    OFF = "off"  # an order: the setting `act` has this value until the order ends; so do the next two
    PROPOSE = "propose"
    ON = "on"


ORDERS: Final = frozenset({Direction.OFF, Direction.PROPOSE, Direction.ON})


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the control topic, with the key `hold_key` of the group. The newest record of a key counts."""

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
        whole = {Direction.ALL: "paused ", Direction.PIN: f"pinned at {self.replicas} "}
        whole |= {order: f"act = {order} " for order in ORDERS}
        what = whole.get(self.direction, f"{self.direction} paused ")
        if self.until_us == REMOVED_US:
            return f"{what}by {self.by}" + f": {self.reason}" * bool(self.reason)
        until = datetime.fromtimestamp(self.until_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{what}until {until}" + (f" by {self.by}" * bool(self.by)) + (f": {self.reason}" * bool(self.reason))


_decoder: Final = msgspec.json.Decoder(Hold)


def hold_key(group: str, topic: str, *, is_order: bool) -> bytes:
    """Return the key of a group's pause or pin, or that of its order, which is independent of them."""
    return plan_key(group, topic) + b"/act" * is_order


def decode_hold(value: bytes, *, is_order: bool = False) -> Hold:
    """Return a hold. is_order: what its key says. Raises one of `contracts.validation.DECODE_ERRORS`."""
    hold = _decoder.decode(value)
    if (hold.direction in ORDERS) != is_order:
        raise msgspec.ValidationError(f"{hold.direction} has the key of another kind")
    if hold.v != HOLD_VERSION:
        raise msgspec.ValidationError(f"version {hold.v} is not supported (supported: {HOLD_VERSION})")
    return hold
