"""Why an event can be late: names, in the order in which they are asked for, and what each means to a reader."""

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """The first that holds is the cause; the last holds always."""

    GENERATOR = "generator-late"
    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    REPLICA_DEAD = "replica-dead"
    GROUP_STOPPED = "group-stopped"
    HANDOVER = "handover"
    REPLICA_STARTING = "replica-starting"
    BURST = "burst"
    OVERLOADED = "overloaded"


MEANINGS: Final[dict[Cause, str]] = {
    Cause.GENERATOR: "The generator sent it late; sent when intended, it would have been in time.",
    Cause.UPSTREAM: "It was on its way to Payment for too long: in the order service, or in the broker.",
    Cause.DOWNSTREAM: "Its own service took too long: whatever Payment calls was slow.",
    Cause.REPLICA_DEAD: "Its replica had died or was evicted, and its partition waited for a successor.",
    Cause.GROUP_STOPPED: "The whole group stood still for a rebalance.",
    Cause.HANDOVER: "Its partition was on its way from one replica to another.",
    Cause.REPLICA_STARTING: "A replica that had been asked for was not ready yet.",
    Cause.BURST: "More arrived at once than its replica serves within the target, though on average it keeps up.",
    Cause.OVERLOADED: "Its replica had more to do than it can do, for longer than a burst lasts.",
}
"""Cause → one sentence for the page."""


def title(cause: str) -> str:
    """Return the cause's name as a reader wants it: "replica-dead" is "Replica dead"; unknown ones alike."""
    return cause.replace("-", " ").capitalize()


def meaning(cause: str) -> str:
    """Return its sentence; empty for a cause that this version does not know."""
    return MEANINGS[Cause(cause)] if cause in set(Cause) else ""
