"""Who plays against tail-aware: policies as their products come, at each setting worth a try, constant counts, and
share groups.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import msgspec

from bench.experiments.experiment import World

Settings = tuple[tuple[str, Any], ...]
"""(Key, value) over the scenario's, as `--set` takes them; in order of keys."""


class Player(msgspec.Struct, frozen=True):
    """A policy with settings over its own."""

    name: str
    policy: str
    settings: Settings = ()
    ordered: bool = True
    """The events of a partition are served in their order. Share groups keep none."""

    def in_world(self, one: World) -> World:
        """Return the world with the player's settings."""
        return World(one.scenario, tuple(sorted({**dict(one.changes), **dict(self.settings)}.items())))


def _settings(changes: dict[str, Any]) -> Settings:
    return tuple(sorted((f"policy.{key}", value) for key, value in changes.items()))


OURS: Final = Player("tail-aware", "tail-aware")
EVEN: Final = {"ensure_even_distribution_of_partitions": True}
FLINK: Final = {
    **{"utilization_target": 0.7, "utilization_min": 0.4, "utilization_max": 1.0, "alignment": "evenly-spread"},
    **{"catch_up_s": 1800.0, "metrics_window_s": 900.0, "stabilisation_s": 300.0, "scale_down_interval_s": 3600.0},
    "backlog_lag_s": 300.0,
}
"""The operator's own defaults: for jobs whose restart takes minutes."""
DEFAULTS: Final = {
    "algorithm-1": Player("algorithm-1", "algorithm-1"),
    "algorithm-2": Player("algorithm-2", "algorithm-2"),
    "linear": Player("linear", "linear"),
    "keda-hpa": Player("keda-hpa", "keda-hpa", _settings({"lag_threshold": 5})),
    "keda-hpa, even": Player("keda-hpa, even", "keda-hpa", _settings({"lag_threshold": 5, **EVEN})),
    "flink-ds2": Player("flink-ds2", "flink-ds2", _settings(FLINK)),
    "landau": Player("landau", "landau"),
}
"""As papers and products have them."""

PAIRS: Final = (
    *((0.4, 0.3), (0.45, 0.4), (0.5, 0.4), (0.6, 0.4), (0.6, 0.6), (0.7, 0.4), (0.7, 0.7)),
    *((0.8, 0.4), (0.8, 0.6), (0.8, 0.8), (0.9, 0.6), (0.9, 0.9), (1.0, 0.6)),
)
SHARES: Final = [{"f_up": up, "f_down": down} for up, down in PAIRS]
LAGS: Final = [
    {"lag_threshold": lag, "scale_down_stabilisation_s": window_s}
    for lag, window_s in product((0, 10, 25, 50), (300.0, 60.0))
]
"""0: what a replica serves in W, which a careful user reckons for each service."""
BUSY: Final = [
    {
        "utilization_target": target,
        "utilization_min": round(target - below, 2),
        "utilization_max": round(target + 0.05, 2),
    }
    for target, below in product((0.3, 0.35, 0.4, 0.45, 0.5, 0.6), (0.05, 0.2))
]
FILLS: Final = [
    {"fill": fill, "interval_s": pause_s} for fill, pause_s in product((0.25, 0.35, 0.45, 0.6), (30.0, 5.0))
]
GRIDS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "algorithm-1": tuple(SHARES),
    "algorithm-2": tuple(SHARES),
    "linear": tuple(SHARES),
    "keda-hpa": tuple(LAGS),
    "keda-hpa, even": tuple({**one, **EVEN} for one in LAGS),
    "flink-ds2": tuple(BUSY),
    "landau": tuple(FILLS),
}
"""Name of an opponent → what is tried, over the policy's own defaults, whose times are in seconds."""
COUNTS: Final = (*range(1, 11), 12, 15, 20, 25)
"""Constant counts, up to the number of partitions."""


def candidates(opponent: str) -> list[Player]:
    """Return the opponent at each setting of its grid, in which its defaults are too."""
    default = DEFAULTS[opponent]
    tried = [Player(opponent, default.policy, _settings(one)) for one in GRIDS[opponent]]
    return list(dict.fromkeys([default, *tried]))


def constant_counts(one: World) -> Iterator[Player]:
    """Yield the constant counts that the world has partitions for."""
    partitions = _question(one).payment.partitions
    for count in COUNTS:
        if count <= partitions:
            yield Player(f"static-{count}", "static", (("initial_replicas", count),))


def share_groups(one: World) -> Iterator[Player]:
    """Yield a share group (KIP-932) at each constant count and under `linear`: as one pool of single events, and as
    measured, where a consumer acquires whole batches.
    """
    counts = [*constant_counts(one), DEFAULTS["linear"]]
    for whole in (False, True):
        if whole and _question(one).simulation.shared_limits:
            continue  # the simulator has no batches behind a shared limit
        told = {"payment.delivery": "share", **({"simulation.whole_batches": True} if whole else {})}
        for player in counts:
            name = f"share group{' in batches' if whole else ''}, {player.name}"
            yield Player(name, player.policy, tuple(sorted({**dict(player.settings), **told}.items())), ordered=False)


def _question(one: World) -> Any:
    return one.experiments(OURS.policy, 1)[0].question()
