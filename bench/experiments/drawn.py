"""Worlds that nobody chose: a curve with all else drawn by a number, each anew for all players."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from random import Random
from statistics import fmean
from typing import Any, Final

import msgspec

from bench.experiments.experiment import World, world
from bench.experiments.fronts import FrontFigures
from bench.experiments.goals import ENOUGH
from bench.experiments.opponents import OURS
from bench.experiments.worlds import RANDOM
from bench.markdown import Columns, in_columns
from bench.results import load
from bench.scenario import load_scenario
from loadgen.workloads import WORKLOADS
from report.wording import share

FILE: Final = "fronts-drawn"
CURVES: Final = (
    *("w1", "w3", "w4", "w1-skew9", "hot-key", "step", "ramp", "sine", "spike", "silence"),
    *("flash-crowd", "square-30", "square-5", "sawtooth", "zero-then-load"),
)
"""Scenarios whose curve a world may have."""
SETTINGS: Final[Mapping[str, tuple[Any, ...]]] = {
    "partitions": (5, 9, 12, 20),
    "service_time_s": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "latency_target_s": (0.25, 0.5, 1.0, 2.0),
    "spacing": ("burst", "smooth", "poisson"),
    "burst_period_s": (0.5, 0.8, 1.0, 1.3),
    "decision_interval_s": (0.5, 1.0, 2.0),
    "startup_s": (0.0, 1.0, 2.0, 4.0, 8.0),
    "pause_s": (0.02, 0.05, 0.1),
    "distribution": ("deterministic", "exponential"),
}
"""What is drawn, and from what: each value with equal chance, but for those that leave no question."""
IN_SIGHT: Final = 60
"""The first worlds: what they showed has been mended, so that those after them say more."""
FULLEST: Final = 0.6
"""Of a second, and of W for a burst: the most that the events of one partition may take."""
LEAST_REPLICAS: Final = 1.5
"""That the busiest second keeps busy: where one is enough for all, nothing is decided."""


def drawn_worlds(count: int) -> list[World]:
    """Return the worlds 1 to `count`: each is what its number draws, however many there are."""
    return [_drawn(number) for number in range(1, count + 1)]


def _drawn(number: int) -> World:
    """Draw until a replica could serve each partition in time, and none all of them: others tell nobody apart."""
    from bench.simulation.sent import sent_by  # noqa: PLC0415  compiled code only where it is needed

    random = Random(number)
    while True:
        curve = random.choice(CURVES)
        told = {key: random.choice(values) for key, values in SETTINGS.items()}
        if WORKLOADS[load_scenario(curve).load.workload].partitions:
            del told["partitions"]  # it is a table of its own
        if told["spacing"] != "burst":
            del told["burst_period_s"]
        one = world(curve, {**told, **RANDOM})
        question = one.experiments(OURS.policy, 1)[0].question()
        busy_s = sent_by(question).table() * question.payment.service_time_s
        room_s = FULLEST * min(1.0, question.target.latency_target_s)
        if busy_s.max() <= room_s and busy_s.sum(axis=1).max() >= LEAST_REPLICAS:
            return one


class Came(msgspec.Struct, frozen=True):
    """What a player came to; means over seeds."""

    in_sla: float
    replica_minutes: float
    plan_changes: float
    beaten_by: str


class DrawnWorld(msgspec.Struct, frozen=True, kw_only=True):
    """One world."""

    world: str
    seeds: int
    players: dict[str, Came]

    def __str__(self) -> str:
        """Return what ours came to."""
        ours = self.players[OURS.name]
        front = f"beaten by {ours.beaten_by}" if ours.beaten_by else "on the front"
        return f"{self.world}: {share(ours.in_sla)} at {ours.replica_minutes:.1f} r-m, {front}"


def by_world(rows: Iterable[FrontFigures]) -> Iterator[DrawnWorld]:
    """Yield the worlds in which ours has a row; the rows of a world come one after the other."""
    for name, group in groupby(rows, key=lambda row: row.world):
        some = list(group)
        came = {row.player: Came(row.in_sla, row.replica_minutes, row.plan_changes, row.beaten_by) for row in some}
        if OURS.name in came:
            yield DrawnWorld(world=name, seeds=max(row.seeds for row in some), players=came)


def _beaten(one: DrawnWorld) -> str:
    by = one.players[OURS.name].beaten_by
    return f"{by}: {share(one.players[by].in_sla)}, {one.players[by].replica_minutes:.1f}" if by else "–"


WORLDS: Final[Columns] = {
    "world": lambda one: one.world,
    f"{OURS.name}: in SLA": lambda one: share(one.players[OURS.name].in_sla),
    "r-m": lambda one: f"{one.players[OURS.name].replica_minutes:.1f}",
    "changes": lambda one: f"{one.players[OURS.name].plan_changes:.0f}",
    "beaten by": _beaten,
}
PLAYERS: Final[Columns] = {
    "player": lambda line: line[0],
    "in SLA, mean": lambda line: share(fmean(one.in_sla for one in line[1])),
    "least": lambda line: share(min(one.in_sla for one in line[1])),
    "worlds with 99.9 %": lambda line: str(sum(one.in_sla >= ENOUGH for one in line[1])),
    "r-m, mean": lambda line: f"{fmean(one.replica_minutes for one in line[1]):.1f}",
    "changes, mean": lambda line: f"{fmean(one.plan_changes for one in line[1]):.0f}",
    "beaten in": lambda line: str(sum(bool(one.beaten_by) for one in line[1])),
}


def drawn_table() -> str:
    """Return in how many worlds ours is beaten, every player that took part in all, and the worlds, collapsed."""
    found = load(FILE, DrawnWorld)
    worlds = [row.result for row in found]
    beaten = [bool(one.players[OURS.name].beaten_by) for one in worlds]
    others = beaten[IN_SIGHT:]
    possible = sum(any(came.in_sla >= ENOUGH for came in one.players.values()) for one in worlds)
    everybody = dict.fromkeys(name for one in worlds for name in one.players)
    lines = [
        (name, [one.players[name] for one in worlds])
        for name in everybody
        if all(name in one.players for one in worlds)
    ]
    lines.sort(key=lambda line: -fmean(one.in_sla for one in line[1]))
    return (
        f"**`{OURS.name}` is beaten in {sum(beaten)} of {len(worlds)} drawn worlds**, in {sum(others)} of the "
        f"{len(others)} after number {IN_SIGHT}; in {possible} of all somebody keeps 99.9 %, "
        "a constant count mostly.\n\n"
        + in_columns(PLAYERS, lines)
        + "\n<details><summary>each world</summary>\n\n"
        + in_columns(WORLDS, worlds, (row.origin for row in found))
        + "\n</details>\n"
    )
