"""What the comparison page shows, as plain values: whoever compares runs fills it in, the page only draws it."""

from dataclasses import dataclass

from report.statistics import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Mean of paired differences, this one minus the reference, with its interval."""

    mean: float
    low: float
    high: float
    distinguishable: bool
    """The interval leaves 0 out, and says how much is chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One policy, or one run, of a group. Gaps are None for the reference itself and where nothing can be paired."""

    label: str
    runs: int
    in_sla: Interval
    """Share of events within the latency target."""
    replica_minutes: Interval
    p99_s: Interval | None = None
    p999_s: Interval | None = None
    on_front: bool = False
    """Nobody in the group keeps more events in SLA at the same cost, or as many at less."""
    in_sla_gap: Gap | None = None
    replica_minutes_gap: Gap | None = None
    p99_gap_s: Gap | None = None
    p999_gap_s: Gap | None = None
    note: str = ""
    """What else is to be said of it against the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Those that met the same events."""

    title: str
    """The scenario, with what is set over it."""
    latency_target_s: float
    percentile: float
    reference: str
    """Label of the one that the others are compared with."""
    compared: tuple[Compared, ...]
    bound_replica_minutes: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """A whole comparison."""

    title: str
    verdict: str
    """One sentence."""
    groups: tuple[Group, ...]
    method: str = ""
    """How the intervals were made, and what they do not tell."""
    problems: tuple[str, ...] = ()
    """Runs that are missing or do not stand."""
    command: str = ""
    provenance: tuple[tuple[str, str], ...] = ()
    """Label and text: commit, machine, versions."""
