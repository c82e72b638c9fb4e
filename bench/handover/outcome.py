"""What an experiment prints with --json: what it says of itself, beside its figures."""

from typing import Any

import msgspec

from bench.handover import faults
from bench.handover.evidence import Evidence
from bench.handover.failover import FailoverFigures
from bench.handover.figures import HandoverFigures
from bench.handover.stretch import Stretch


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it was done and whether it counts. Lengths of time in seconds."""

    runtime: str
    heartbeat_s: float
    replicas: int
    partitions: int
    rate: float
    """Events/s."""
    seed: int
    quick: bool
    lateness_p99_s: float
    """Of the generator."""
    lateness_max_s: float
    valid: bool
    """The generator was on time, and every step came to its end."""
    problem: str
    """Why not; empty where valid."""
    interrupted: bool
    wall_s: float

    def to_json(self) -> bytes:
        """Return one flat JSON object: the figures stand beside the rest."""
        flat: dict[str, Any] = msgspec.to_builtins(self)
        return msgspec.json.encode(flat.pop("figures", {}) | flat)


class HandoverResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench handover`."""

    steps: str
    """What was done: mixed, random, storm, slow-event."""
    figures: HandoverFigures


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What must not happen, counted."""

    lost: int
    duplicates: int
    order_violations: int
    offset_regressions: int

    @classmethod
    def of(cls, evidence: Evidence) -> "Faults":
        """Count them."""
        return cls(
            lost=faults.lost(evidence.sent_us, evidence.served),
            duplicates=faults.duplicates(evidence.served),
            order_violations=faults.order_violations(evidence.served),
            offset_regressions=faults.offset_regressions(evidence.committed),
        )


class ScaleResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench scale`: large groups carry out plans that move many partitions at once."""

    plans: int
    moved: int
    """Partitions that each plan moves."""
    startup_s: float
    """From the start of the processes until all partitions were served as planned."""
    applied_p50_s: float | None
    applied_max_s: float | None
    """From the plan's record until the last replica had the last partition."""
    rounds_max: int
    pause_p50_s: float | None
    pause_max_s: float | None
    """Time that a moved partition was served by nobody."""
    figures: HandoverFigures


class GrowthResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench growth`: a topic grows step by step, then one replica takes all."""

    partitions_before: int
    step: int
    steps: int
    startup_s: float
    """From the start of the processes until the first partitions were served as planned."""
    growth_s: float
    """From the first growth until all partitions were served as planned."""
    stable_p50_s: float | None
    stable_max_s: float | None
    """From one growth until its partitions were served as planned."""
    stable_after_last_s: float | None
    rounds: int
    """Of the group, during the growth."""
    shrink_s: float | None
    """From a plan that gives one replica everything until it served everything."""
    shrink_rounds: int
    quiet: Stretch
    growing: Stretch
    """Of the partitions that were there before."""
    throughput_share: float
    """Theirs during the growth against the quiet stretch before."""
    faults: Faults


class BounceResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench bounce`: every replica is stopped and replaced, one after the other."""

    bounces: int
    latency_target_s: float
    late: int
    """Events with a latency above it, from the first stop until a second after the last replacement served."""
    quiet: Stretch
    bouncing: Stretch
    faults: Faults


class FailoverResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench failover`."""

    figures: FailoverFigures
