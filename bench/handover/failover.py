"""What the end of a replica costs, by how it ended. Values: worst latency of any event in the windows."""

from collections.abc import Sequence

import msgspec
import numpy as np

from bench.handover import faults
from bench.handover.evidence import Evidence, Served
from bench.handover.windows import Window, find_windows, overlapping

KNOWN: str = "known death"
UNKNOWN: str = "unknown death"
SIGTERM: str = "sigterm"


class FailoverFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; null where no such step was taken."""

    known_death_max_s: float | None
    """SIGKILL, and whoever started the process saw it end and said so."""
    unknown_death_max_s: float | None
    """SIGKILL, and nobody said so: the session has to time out."""
    sigterm_max_s: float | None
    """SIGTERM of a replica that holds partitions."""
    known_deaths_s: tuple[float, ...]
    """Worst latency of each, in order."""
    unknown_deaths_s: tuple[float, ...]
    sigterms_s: tuple[float, ...]
    lost: int
    duplicates: int
    """At-least-once: what was served after the last commit before a kill is served again."""
    order_violations: int
    offset_regressions: int
    kills: int
    sigterms: int
    unfinished: int
    events: int


def judge_failover(evidence: Evidence) -> FailoverFigures:
    """Return the figures of one experiment."""
    first = evidence.served.first_completions()
    found = find_windows(evidence)
    known, unknown, sigterm = (_worst(first, found, kind) for kind in (KNOWN, UNKNOWN, SIGTERM))
    return FailoverFigures(
        known_death_max_s=max(known, default=None),
        unknown_death_max_s=max(unknown, default=None),
        sigterm_max_s=max(sigterm, default=None),
        known_deaths_s=known,
        unknown_deaths_s=unknown,
        sigterms_s=sigterm,
        lost=faults.lost(evidence.sent_us, evidence.served),
        duplicates=faults.duplicates(evidence.served),
        order_violations=faults.order_violations(evidence.served),
        offset_regressions=faults.offset_regressions(evidence.committed),
        kills=len(known) + len(unknown),
        sigterms=len(sigterm),
        unfinished=sum(len(window.missing) for window in found),
        events=len(evidence.sent_us),
    )


def _worst(first: Served, found: Sequence[Window], kind: str) -> tuple[float, ...]:
    """Return the worst latency, s, of any event in each window of this kind."""
    mine = [window for window in found if window.step.kind == kind]
    rows = [overlapping(first, window.step.at_us, window.ended_us) for window in mine]
    return tuple(int(np.max(first.latency_us[one], initial=0)) / 1e6 for one in rows)
