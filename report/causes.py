"""Why events were late: the causes in words, and what result.json tells of them."""

from enum import StrEnum
from typing import Final

import msgspec

EPISODES_IN_JSON: Final = {"episodes": "spells", "episodes_left_out": "spells_left_out"}
"""Field → its name in result.json, which readers rely on."""


class Cause(StrEnum):
    """Why an event can be late, in the order in which it is asked: the first that holds is the cause; the last does."""

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


def cause_title(cause: str) -> str:
    """Return the cause's name as a reader wants it: "replica-dead" is "Replica dead"; unknown ones alike."""
    return cause.replace("-", " ").capitalize()


def cause_meaning(cause: str) -> str:
    """Return its sentence; empty for a cause that this version does not know."""
    return MEANINGS[Cause(cause)] if cause in set(Cause) else ""


class CauseOfLateness(msgspec.Struct, frozen=True, kw_only=True):
    """All late events of one cause."""

    cause: str
    """A `Cause`; text, for what later versions add."""
    events: int
    share: float
    """Of all late events."""
    worst_s: float | None
    """Latency of its worst event; null where none of them was ever done."""


class LateEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """Late events of one cause on one partition, one after the other. All episodes together hold every late event."""

    cause: str
    partition: int | None
    replica: str | None
    """That served them; null where nobody did."""
    epoch: int | None
    """Of the plan under which they were served."""
    from_s: float
    """Intended time of the first, since the start of the run."""
    until_s: float
    events: int
    worst_s: float | None
    why: str
    """One sentence with the figures that tell the cause."""


class Tail(msgspec.Struct, frozen=True, kw_only=True, rename=EPISODES_IN_JSON):
    """Why events were late. Exhaustive and exclusive: `causes` sum up to `late`, or to `explained`."""

    late: int
    """Events over the latency target, never done ones included."""
    explained: int | None = None
    """Of them, those that have a cause here: of more than a million only so many, at equal distances; null: all."""
    causes: tuple[CauseOfLateness, ...]
    """Most events first."""
    episodes: tuple[LateEpisode, ...]
    """The largest, by time; `episodes_left_out` are not listed."""
    episodes_left_out: int = 0
    by_second: dict[str, tuple[int, ...]] = {}
    """Cause → late events intended in each second of the run."""
