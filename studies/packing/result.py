"""What a comparison comes to, as `--json` prints it and bench/reference keeps it."""

import msgspec

from report.statistics import Interval


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Values of single streams, which one published stream has to lie among."""

    median: float
    least: float
    most: float


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One packer on the streams of a study: means over iterations, then over streams, with 95 % intervals."""

    packer: str
    rscore: Interval
    """Load that changes its owner in an iteration, in capacities of a consumer."""
    cbs: Interval
    """Share of consumers above the least that any of the twelve needs in the same iteration."""
    consumers: Interval
    moved: Interval
    """Partitions that change their owner in an iteration, those without load too."""
    forced_rscore: Interval
    """Least Rscore that overflow forces upon whoever starts from the owners that this packer left."""
    front_of_twelve: bool
    """None of the twelve is as good in Rscore and CBS and better in one."""
    front: bool
    """The same among all points."""
    dominated_by: tuple[str, ...]
    """Settings of keep-in-place that are no worse in Rscore and CBS."""


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """MWF beside the existing algorithm with the smallest Rscore."""

    baseline: str
    rscore_change: Interval
    """Per stream: share by which MWF's Rscore differs from the baseline's."""
    rscore_change_range: Spread
    cbs: Interval
    cbs_range: Spread
    consumers_change: Interval
    """Per stream: share by which MWF's consumers differ from the same baseline's."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest Rscore of keep-in-place among settings whose CBS is no worse than MWF's."""

    packer: str | None
    """None: no setting has so few consumers."""
    share_of_mwf: float | None
    forced_share_of_mwf: float | None
    """What overflow alone forces on that setting, as a share of MWF's Rscore."""
    target: float | None
    """Share of MWF's Rscore that was asked for; None where nothing was."""
    undominated: tuple[str, ...]
    """Those of the twelve that no setting dominates."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All packers on streams with the same number of partitions and the same steps."""

    partitions: int
    delta: int
    streams: int
    iterations: int
    points: tuple[Point, ...]
    headline: Headline | None
    """None where the baseline moves nothing, so that nothing can be said relative to it."""
    goal: Goal


class LatencyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What events wait under one packer, or under kd_n, in the paper's model."""

    packer: str
    consumers: Interval
    consumers_range: Spread
    p90_delayed_s: Spread | None
    """90th percentile of the delayed events alone, as published; None: no stream had any."""
    streams_delayed: int
    """Streams in which any event was delayed."""
    mean_s: Interval
    share_delayed: Interval
    p90_s: Interval
    """90th percentile of all events."""


class LatencyStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The latency model on streams as in section VI-C."""

    partitions: int
    delta: int
    streams: int
    iterations: int
    rows: tuple[LatencyRow, ...]


class OptimumRow(msgspec.Struct, frozen=True, kw_only=True):
    """Few partitions: the packer with the least Rscore + consumer_rate × consumers, and others on the same stream."""

    partitions: int
    step: int
    """A load changes by −step, 0 or +step, in hundredths of a capacity."""
    consumer_rate: float
    iterations: int
    least_cost: float
    """No packer that does not know the future has a smaller expected cost …"""
    reached_cost: float
    """… and that of the best one found is no larger than this."""
    consumers: float
    """Of the best one, on this stream."""
    rscore: float
    keep_in_place_rscore: float
    """At as many consumers, interpolated between its settings."""
    mwf_consumers: float
    mwf_rscore: float


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of the paper beside what we find."""

    claim: str
    published: str
    ours: str
    verdict: str
    """reproduced, differs or cannot be checked."""
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `tailpack packing compare` finds."""

    seed: int
    start: int | None
    """Load of every partition at first; null: uniform."""
    quick: bool
    studies: tuple[Study, ...]
    latency: LatencyStudy
    claims: tuple[Claim, ...]
    source: str
    """Of what is published."""
    wall_s: float
    optima: tuple[OptimumRow, ...] = ()
    """Empty where they were not asked for."""

    def to_json(self) -> bytes:
        """Return one JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1)
