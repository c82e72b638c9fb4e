"""Define the kinds of faults, and create random schedules of faults from a seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

SESSION_S: Final = 2.0
"""Session timeout of the replicas under test, s."""
LONGEST_S: Final = 3 * SESSION_S
LONG_S: Final = (60.0, 150.0)
WITHIN_S: Final = 2.0
"""All faults of a schedule begin within this time (s), so that several are active at the same time."""
FEWEST, MOST = 2, 5


class Kind(StrEnum):
    KILL = "kill"
    TERMINATE = "terminate"
    FREEZE = "freeze"  # SIGSTOP, and SIGCONT at the end
    BROKER_KILL = "broker killed"  # started again at the end
    BROKER_FREEZE = "broker frozen"
    BROKER_GONE = "broker's host gone"  # frozen, and its proxy drops all bytes without a reset
    BROKER_CUT = "broker cut off"  # it reaches the other brokers, but its clients do not reach it
    BROKER_SLOW = "broker slow"
    CLOCK = "clock stepped"  # by an hour, for all processes but the brokers, and back at the end
    DELETED = "topic deleted"  # created again at the end, empty
    UNWRITABLE = "topic unwritable"  # it requires three copies, and one broker is killed
    FOREIGN = "foreign records"  # malformed, oversize and foreign ones, in every topic
    HOSTILE = "hostile control records"  # the pipeline's own, with extreme values
    DISK = "disk full"  # the one that holds logs and files of the processes
    RIVAL = "second autoscaler"
    GROWTH = "topic grown"


class Variant(StrEnum):
    """Rules by which random schedules are created."""

    SHORT = "short"  # two to five faults of some seconds
    LONG = "long"  # one or two faults of one to two and a half minutes
    HOSTILE = "hostile"  # as short, always with hostile control records
    COMPRESSED = "compressed"  # as short, with compressed orders
    THROTTLED = "throttled"  # as short, with half a core for each broker
    NEW = "new"  # all but short: each twentieth is long

    def of(self, seed: int) -> "Variant":
        """Return the variant of a seed's schedule."""
        if self is not Variant.NEW:
            return self
        others = (Variant.HOSTILE, Variant.COMPRESSED, Variant.THROTTLED)
        return others[seed % 3] if seed % 20 else Variant.LONG


ON_PROCESSES: Final = (Kind.KILL, Kind.TERMINATE, Kind.FREEZE)
ONE_BROKER: Final = (Kind.BROKER_KILL, Kind.BROKER_FREEZE, Kind.BROKER_GONE, Kind.BROKER_CUT, Kind.BROKER_SLOW)
ON_BROKERS: Final = (*ONE_BROKER, Kind.UNWRITABLE)
ALONE: Final = tuple((kind,) for kind in Kind if kind not in (*ON_PROCESSES, *ON_BROKERS))
CAN_LAST: Final = (*ONE_BROKER, Kind.UNWRITABLE, Kind.DELETED, Kind.FREEZE, Kind.RIVAL)
LEADER, REPLICA, AUTOSCALER = "leader", "replica", "autoscaler"
BROKERS: Final = 3
TARGETS: Final = (REPLICA, REPLICA, LEADER, AUTOSCALER, "order", "shipment", "notification")
CHOICES: Final = (
    dict.fromkeys(ON_PROCESSES, TARGETS)
    | dict.fromkeys(ONE_BROKER, tuple(map(str, range(1, BROKERS + 1))))
    | dict.fromkeys((Kind.DELETED, Kind.UNWRITABLE), ("autoscaler.plans", "autoscaler.progress"))
    | {Kind.CLOCK: ("+3600", "-3600")}
)
AT_ONCE: Final = (Kind.KILL, Kind.TERMINATE, Kind.FOREIGN, Kind.HOSTILE, Kind.GROWTH)


@dataclass(frozen=True)
class Fault:
    kind: Kind
    at_s: float
    """Begin, in seconds since the begin of the schedule."""
    lasts_s: float
    """Duration in seconds; 0: the fault has no end."""
    target: str
    """Process, topic, number of a broker, or step of the clock in seconds; empty for other kinds."""
    which: float
    """Position (0 to 1) of the chosen replica in the list of replicas."""

    def __str__(self) -> str:
        target = f" {self.target}" if self.target else ""
        lasts = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.at_s:.1f} s: {self.kind}{target}{lasts}"


def schedule(seed: int, left_out: frozenset[Kind] = frozenset(), variant: Variant = Variant.SHORT) -> tuple[Fault, ...]:
    """Return the faults of a seed, sorted by their begin. Only faults of processes may occur more than once.

    left_out: kinds that this machine does not support. They are removed from the schedule, and nothing replaces them.
    """
    chance = random.Random(seed)
    faults = [_draw(chance, Kind.HOSTILE)] if variant is Variant.HOSTILE else []
    if variant is Variant.LONG:
        first = _draw_long(chance, CAN_LAST)
        others = [kind for kind in CAN_LAST if not {first.kind, kind} <= {*ON_BROKERS}]
        faults = [first, _draw_long(chance, others)][: chance.randint(1, 2)]
    for _ in range(0 if variant is Variant.LONG else chance.randint(FEWEST, MOST)):
        families = [ON_PROCESSES, ON_PROCESSES, *_not_drawn_yet(faults)]
        faults.append(_draw(chance, chance.choice(chance.choice(families))))
    return tuple(sorted((fault for fault in faults if fault.kind not in left_out), key=lambda fault: fault.at_s))


def _not_drawn_yet(faults: list[Fault]) -> list[tuple[Kind, ...]]:
    """Only one fault may concern a broker, so that two of the three brokers are never disturbed."""
    return [family for family in (ON_BROKERS, *ALONE) if not any(fault.kind in family for fault in faults)]


def _draw_long(chance: random.Random, kinds: Sequence[Kind]) -> Fault:
    return replace(_draw(chance, chance.choice(kinds)), lasts_s=round(chance.uniform(*LONG_S), 1))


def _draw(chance: random.Random, kind: Kind) -> Fault:
    lasts_s = 0.0 if kind in AT_ONCE else chance.triangular(0.5, LONGEST_S, 1.5)
    at_s = round(chance.uniform(0, WITHIN_S), 2)
    target = chance.choice(CHOICES.get(kind, ("",)))
    return Fault(kind, at_s, round(lasts_s, 2), target, round(chance.random(), 3))
