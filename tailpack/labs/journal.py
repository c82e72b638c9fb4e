"""What an experiment has done so far, and how it looks: for the progress line, and for the judge at the end."""

from dataclasses import dataclass, field

from bench.handover.evidence import Step
from tailpack.labs.timeline import Timeline


@dataclass(slots=True)
class Journal:
    """Steps and quiet stretches, in order."""

    steps: list[Step] = field(default_factory=list)
    quiet: list[tuple[int, int]] = field(default_factory=list)
    handovers: int = 0
    """Those whose new owner has been seen."""
    moved_us: list[int] = field(default_factory=list)
    """Latencies of events of partitions while they were moved: a running estimate, the judge is exact."""
    _read: int = 0

    def note(self, step: Step, partitions: set[int], timeline: Timeline) -> None:
        """Keep a step that moved `partitions`."""
        self.steps.append(step)
        self.handovers += len(partitions)
        recent = timeline.since(self._read)
        self._read = len(timeline)
        self.moved_us += [
            row.done_us - row.intended_us
            for row in recent
            if row.partition in partitions and row.done_us >= step.at_us and row.intended_us <= step.until_us
        ]

    def glance(self) -> str:
        """Return the running figures in a few words."""
        if not self.moved_us:
            return ""
        ordered = sorted(self.moved_us)
        p99_us = ordered[max(0, -(-99 * len(ordered) // 100) - 1)]
        return f"moved partitions: p99 {p99_us / 1000:.0f} ms, worst {ordered[-1] / 1000:.0f} ms"
