"""The worlds in which everybody plays: the standard ones at random phases, and the hard ones."""

from typing import Final

from bench.experiments.experiment import World, world
from bench.scenario import stress_names
from contracts.validation import InvalidSettingsError

RANDOM: Final = {"burst_phase_s": "random"}
PERIODS_S: Final = (0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.3)
STANDARD: Final = (
    world("w1", RANDOM),
    world("w1", {**RANDOM, "split": "random"}),
    *(world("w1", {**RANDOM, "burst_period_s": period_s}) for period_s in PERIODS_S),
    world("w1", {**RANDOM, "burst_jitter_s": 0.3}),
    world("w1", {**RANDOM, "spacing": "smooth"}),
    world("w1", {**RANDOM, "spacing": "poisson"}),
    *(world(name, RANDOM) for name in ("w1-skew9", "w3", "w4", "taxi", "taxi-skew9", "diurnal-week")),
    *map(world, ("hot-key", "step", "spike", "sine", "ramp", "silence")),
)


def name_of(one: World) -> str:
    """Return the scenario and what is set over it."""
    return ", ".join((one.scenario, *(said for said in one.settings if said != "burst_phase_s=random")))


def all_worlds(asked: str = "") -> list[World]:
    """Return the standard worlds and the hard ones; asked: scenarios, separated by commas, none: all."""
    every = [*STANDARD, *map(world, stress_names())]
    wanted = {one.strip() for one in asked.split(",") if one.strip()}
    if unknown := wanted - {one.scenario for one in every}:
        raise InvalidSettingsError([f"no world of the fronts is called {', '.join(sorted(unknown))}"])
    return [one for one in every if not wanted or one.scenario in wanted]
