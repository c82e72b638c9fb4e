"""Options of the operator's autoscaler, by its names without the prefix `job.autoscaler.`."""

from dataclasses import dataclass
from typing import Final

from contracts.settings import Rule, Settings, Values, setting

AGGREGATORS: Final = ("max", "avg")
ALIGNMENTS: Final = ("none", "evenly-spread", "maximize-utilisation")


@dataclass(frozen=True, kw_only=True)
class FlinkDs2Settings(Settings):
    """Raises ValueError naming every value that is out of range.

    Times: the operator's own defaults suit jobs that restart in minutes (window 15 min, catch-up 30 min). The defaults
    here are those of the example in its documentation with minutes read as seconds, since a rebalance takes no longer
    than seconds. Everything else is as in that example, or the operator's default where the example says nothing.
    """

    utilization_target: float = setting(0.6, "share", above=0, most=1)
    """utilization.target: share of its time that a replica should be busy. Example 0.6, default 0.7."""
    utilization_max: float = setting(0.8, "share", least=0, most=1)
    """utilization.max: no action while the replicas are less busy than this, and more than `utilization_min`."""
    utilization_min: float = setting(0.4, "share", least=0, most=1)
    """utilization.min. Example: 0.6 ± 0.2; default: target ± 0.3."""
    catch_up_s: float = setting(5.0, "s", least=0)
    """catch-up.duration, s: a backlog should be gone after that. 0: backlogs ask for nothing. Example 5 min."""
    restart_s: float = setting(2.0, "s", least=0)
    """restart.time, s: what a rescale is expected to take where it is not tracked. Example 2 min."""
    track_restart_time: bool = setting(True)
    """restart.time-tracking.enabled: take the t_r that this very group shows instead. The operator's default is off."""
    restart_limit_s: float = setting(15.0, "s", least=0)
    """restart.time-tracking.limit, s: t_r counts as no more than this. Default 15 min."""
    metrics_window_s: float = setting(5.0, "s", above=0)
    """metrics.window, s: rates and busyness are averages over it; nothing is done before it is full. Example 5 min."""
    stabilisation_s: float = setting(1.0, "s", least=0)
    """stabilization.interval, s: after a rescale, nothing is measured for so long. Example 1 min."""
    scale_down_interval_s: float = setting(60.0, "s", least=0)
    """scale-down.interval, s: down only after that long without a reason to stay, and then to the most that was
    recommended meanwhile. Default 1 h."""
    max_scale_down_factor: float = setting(0.6, "share", least=0, most=1)
    """scale-down.max-factor: share of the capacity that may go at once."""
    max_scale_up_factor: float = setting(100_000.0, least=0)
    """scale-up.max-factor: how many times the capacity may come at once."""
    min_parallelism: int = setting(1, least=1)
    """vertex.min-parallelism."""
    max_parallelism: int = setting(200, least=1)
    """vertex.max-parallelism; the number of partitions is the cap in any case."""
    backlog_lag_s: float = setting(5.0, "s", least=0)
    """backlog-processing.lag-threshold, s: a lag that takes longer than this to serve at the present pace is a backlog.
    While there is one, being busy is no reason to grow and being idle none to shrink. Default 5 min."""
    detect_ineffective: bool = setting(False)
    """scaling.effectiveness.detection.enabled: do not scale up again after a scale-up that did not help."""
    effectiveness: float = setting(0.1, least=0)
    """scaling.effectiveness.threshold: share of the expected increase below which a scale-up did not help."""
    observe_scalability: bool = setting(False)
    """observed-scalability.enabled: learn from past rescales how much of its share a further replica really adds."""
    scalability_min: float = setting(0.5, least=0)
    """observed-scalability.coefficient-min: it is never believed to add less than this."""
    scalability_observations: int = setting(3, least=1)
    """observed-scalability.min-observations: rescales that it takes; also how many are remembered."""
    busy_aggregator: str = setting("max", known=AGGREGATORS)
    """metrics.busy-time.aggregator: the busiest replica stands for all (max, the default), or their average (avg)."""
    alignment: str = setting("none", known=ALIGNMENTS)
    """key-group.partitions.adjust.mode: evenly-spread goes up to a count that divides the partitions, which is the
    operator's default; maximize-utilisation to one at which the busiest replica owns fewer of them; none takes DS2's
    own count. With a prime number of partitions the first leaves nothing between 1 and all, hence none here."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return: utilization_min ≤ utilization_target ≤ utilization_max."""
        return (("utilization_target", _between_its_limits),)


def _between_its_limits(values: Values) -> str | None:
    inside = values["utilization_min"] <= values["utilization_target"] <= values["utilization_max"]
    return None if inside else "utilization_min ≤ utilization_target ≤ utilization_max does not hold"
