"""The promise that everything is measured by."""

from dataclasses import dataclass

from contracts.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class Target(Settings):
    """The promise: `percentile` of events within `latency_target_s` (W)."""

    latency_target_s: float = setting(0.5, "s", above=0)
    """W: an event is in time if it is processed so long after its intended time; 0.5 in the papers."""
    percentile: float = setting(0.999, "share", above=0, most=1)
    """q: the share of events that must be within W."""
