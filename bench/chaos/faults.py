"""The faults there are, and random schedules of them that follow from a seed alone."""

import random
from enum import StrEnum
from typing import Final

import msgspec

SESSION_S: Final = 2.0
"""Session of the replicas under test."""
LONGEST_S: Final = 3 * SESSION_S
WITHIN_S: Final = 2.0
"""Faults of one schedule begin within it, so several are there at once."""
FEWEST, MOST = 2, 5


class Kind(StrEnum):
    """What happens."""

    KILL = "kill"
    TERMINATE = "terminate"
    FREEZE = "freeze"
    """SIGSTOP, and SIGCONT in the end."""
    BROKER_KILL = "broker killed"
    """It is started again in the end."""
    BROKER_FREEZE = "broker frozen"
    BROKER_GONE = "broker's host gone"
    """Frozen, and nothing passes to it or from it; no reset."""
    BROKER_CUT = "broker cut off"
    """It goes on with the other brokers, but nothing passes between it and its clients; no reset."""
    BROKER_SLOW = "broker slow"
    CLOCK = "clock stepped"
    """By an hour, for all processes but the brokers, and back in the end."""
    DELETED = "topic deleted"
    """Made anew in the end, empty."""
    UNWRITABLE = "topic unwritable"
    """It asks for more copies than there are brokers, so that no write to it succeeds."""
    FOREIGN = "foreign records"
    """Malformed, oversize and foreign ones, in every topic."""
    DISK = "disk full"
    """The one on which the processes keep logs and files."""
    RIVAL = "second autoscaler"
    GROWTH = "topic grown"


ON_PROCESSES: Final = (Kind.KILL, Kind.TERMINATE, Kind.FREEZE)
ON_BROKERS: Final = (Kind.BROKER_KILL, Kind.BROKER_FREEZE, Kind.BROKER_GONE, Kind.BROKER_CUT, Kind.BROKER_SLOW)
ON_TOPICS: Final = (Kind.DELETED, Kind.UNWRITABLE)
LEADER, REPLICA, AUTOSCALER = "leader", "replica", "autoscaler"
SERVICES: Final = ("order", "shipment", "notification")
TARGETS: Final = (REPLICA, REPLICA, LEADER, AUTOSCALER, *SERVICES)
CONTROL_TOPICS: Final = ("autoscaler.plans", "autoscaler.progress")
BROKERS: Final = 3


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a schedule."""

    kind: Kind
    at_s: float
    """From the schedule's begin."""
    lasts_s: float = 0.0
    """0: it is over at once."""
    target: str = ""
    """Process, topic, number of a broker, or the step of the clock in seconds; empty where there is no choice."""
    which: float = 0.0
    """0 … 1: which of several replicas, by their order."""

    def __str__(self) -> str:
        target = f" {self.target}" if self.target else ""
        lasts = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.at_s:.1f} s: {self.kind}{target}{lasts}"


def schedule(seed: int, left_out: frozenset[Kind] = frozenset()) -> tuple[Fault, ...]:
    """Return the faults of a seed, in the order in which they begin: several, and of most kinds one at most.

    left_out: kinds that cannot be had here. They are left out of the very same schedule, and nothing takes their place.
    """
    chance = random.Random(seed)
    faults: list[Fault] = []
    for _ in range(chance.randint(FEWEST, MOST)):
        families = [ON_PROCESSES, ON_PROCESSES, *_once(faults)]
        faults.append(_drawn(chance, chance.choice(chance.choice(families))))
    return tuple(sorted((one for one in faults if one.kind not in left_out), key=lambda one: one.at_s))


def _once(faults: list[Fault]) -> list[tuple[Kind, ...]]:
    """Return the families of which nothing has been drawn yet. Brokers: one of three, so that two are always well."""
    families = [ON_BROKERS, ON_TOPICS, *((one,) for one in Kind if one not in (*ON_PROCESSES, *ON_BROKERS, *ON_TOPICS))]
    return [family for family in families if not any(one.kind in family for one in faults)]


def _drawn(chance: random.Random, kind: Kind) -> Fault:
    targets: tuple[str, ...] = ("",)
    if kind in ON_PROCESSES:
        targets = TARGETS
    elif kind in ON_BROKERS:
        targets = tuple(map(str, range(1, BROKERS + 1)))
    elif kind in ON_TOPICS:
        targets = CONTROL_TOPICS
    elif kind is Kind.CLOCK:
        targets = ("+3600", "-3600")
    at_once = kind in (Kind.KILL, Kind.TERMINATE, Kind.FOREIGN, Kind.GROWTH)
    lasts_s = 0.0 if at_once else chance.triangular(0.5, LONGEST_S, 1.5)
    return Fault(
        kind=kind,
        at_s=round(chance.uniform(0, WITHIN_S), 2),
        lasts_s=round(lasts_s, 2),
        target=chance.choice(targets),
        which=round(chance.random(), 3),
    )
