"""Progress reports of replicas: every 250 ms and at each change of state. Fields: docs/reference/records.md."""

from enum import StrEnum
from typing import Final

import msgspec

PROGRESS_VERSION: Final = 2  # 1: `recent_rebalances` was `rounds`, `problems` was `unwell`
PROGRESS_INTERVAL_S: Final = 0.25
LATENCY_BOUNDS: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # of `Progress.latencies`, as multiples of W
COUNTS_WITHIN_TARGET: Final = LATENCY_BOUNDS.index(1.0) + 1  # leading counts of `latencies`: events done within W


class ReplicaState(StrEnum):
    """State of a replica."""

    WARM = "warm"  # connected and up to date with the plan, which does not name it yet: owns nothing
    MEMBER = "member"  # in the group, with the partitions that the plan gives it
    DRAINING = "draining"  # got a stop signal; serves until others have taken its partitions
    DRAINED = "drained"  # released all its partitions and left the group
    STOPPING = "stopping"  # about to exit


class RebalanceKind(StrEnum):
    """Cause of a rebalance."""

    PLAN = "plan"  # a new plan
    DEATH = "death"  # a plan that evicts a dead member
    MEMBERSHIP = "membership"  # a member joined, left or was lost without a plan


class Rebalance(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance that changed the partitions of this replica, as this replica observed it."""

    generation: int
    epoch: int
    kind: RebalanceKind
    members: int
    moved: int
    taken: int
    released: int
    pause_us: int
    at_us: int


class ServiceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Service times since the previous report (µs); all 0 without events."""

    events: int = 0
    mean_us: int = 0
    max_us: int = 0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the progress topic; key: replica. Counters start at 0 in each incarnation."""

    replica: str
    incarnation: str
    pid: int
    member_id: str
    generation: int
    epoch: int
    assigned_epoch: int
    state: ReplicaState
    partitions: tuple[int, ...]
    positions: dict[int, int]
    skipped: dict[int, int] = {}
    processed: int
    busy_us: int
    late: int | None = None
    latencies: tuple[int, ...] = ()
    rebalances: int
    at_us: int
    service: ServiceTimes = ServiceTimes()
    recent_rebalances: tuple[Rebalance, ...] = ()
    problems: tuple[str, ...] = ()
    host: str = ""
    pages: str = ""
    v: int = PROGRESS_VERSION


class _Version1(msgspec.Struct):
    rounds: tuple[Rebalance, ...] = ()
    unwell: tuple[str, ...] = ()


def decode_progress(text: bytes | str) -> Progress:
    """Return a report, also of version 1. Raises one of `contracts.validation.DECODE_ERRORS`."""
    report = msgspec.json.decode(text, type=Progress)
    if report.v == 1:
        old = msgspec.json.decode(text, type=_Version1)
        report = msgspec.structs.replace(report, recent_rebalances=old.rounds, problems=old.unwell, v=PROGRESS_VERSION)
    return report
