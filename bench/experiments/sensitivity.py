"""What each number in tail-aware is good for: the same worlds again where it is a fifth lower, and a fifth higher.

Most numbers are constants of a module, some of them inside compiled code, so a variant is a copy of the sources in
which one line differs, run by processes of its own.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import msgspec

from bench.experiments.campaign import ROOT, Missing, Simulations
from bench.experiments.experiment import Experiment, World, simulated, world
from bench.experiments.tuning import cost_s
from bench.experiments.worlds import RANDOM, name_of
from bench.simulation.result import SimulationResult
from contracts.validation import InvalidSettingsError

FILE: Final = "sensitivity"
POLICY: Final = "tail-aware"
SOURCES: Final = Path("autoscaler/policies/tail_aware")
PACKAGES: Final = ("autoscaler", "bench", "contracts", "loadgen", "report")
"""What a simulation imports."""
FACTORS: Final = (0.8, 1.2)
WORLDS: Final = (
    world("w1", RANDOM),
    world("w1", {**RANDOM, "burst_period_s": 0.9}),
    world("w1-skew9", RANDOM),
    *map(world, ("spike", "step", "hot-key", "square-5", "heavy-poisson", "exponential-service", "slow-starts")),
)
"""The papers' load in step with the ticks and out of it, and what the policy has an answer to beside that."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the sources of the policy, or several in one tuple."""

    file: str
    name: str
    value: Any
    place: tuple[int, int, int, int]
    """Where it stands: first line and column, last line and column, as `ast` counts them."""

    def times(self, factor: float) -> Any:
        """Return it so many times as large; a whole number differs by one at least.

        A share above a half by what it leaves of one, so 0.98 becomes 0.976 or 0.984; 0 and 1 of a tuple stay.
        """
        return _times(self.value, factor)

    def put(self, root: Path, value: Any) -> None:
        """Write another value into the sources below `root`."""
        path = root / SOURCES / self.file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        first, start, last, end = self.place
        lines[first - 1 : last] = [lines[first - 1][:start] + repr(value) + lines[last - 1][end:]]
        path.write_text("".join(lines), encoding="utf-8")
        for other in (root / SOURCES).glob("*.py"):  # compiled code that has the number in it is compiled anew
            if other != path and self.name in other.read_text(encoding="utf-8"):
                other.touch()


class SensitivityFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A number at another value, against its own."""

    file: str
    name: str
    value: str
    """Its own."""
    other: str
    factor: float
    seeds: int
    worlds: int
    cost: float
    """Runs and their late events, as `bench fronts --tune` prices them, over those with its own value: geometric mean
    over the worlds."""
    dearest: float
    """In the world where that is most."""
    dearest_world: str
    in_sla: float
    """Mean over the worlds, minus the one with its own value."""
    least_in_sla: float
    """In the world where that is least."""

    def __str__(self) -> str:
        return (
            f"{self.name} {self.value} → {self.other}: {self.cost - 1:+.2%}, "
            f"most {self.dearest - 1:+.2%} in {self.dearest_world}"
        )


def numbers(root: Path = ROOT) -> Iterator[Number]:
    """Yield every constant of the policy that is a number, and every default of its settings."""
    for path in sorted((root / SOURCES).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.value is None:
                continue
            told: ast.expr = node.value
            if isinstance(told, ast.Call) and ast.unparse(told.func) == "setting":
                told = told.args[0]
            elif "Final" not in ast.unparse(node.annotation):
                continue
            try:
                value = ast.literal_eval(told)
            except ValueError:
                continue  # it follows from others
            if _is_numeric(value):
                place = (told.lineno, told.col_offset, told.end_lineno or 0, told.end_col_offset or 0)
                yield Number(path.name, node.target.id, value, place)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_numeric, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(one if one in (0, 1) else _times(one, factor) for one in value)
    if isinstance(value, int):
        return max(value + 1, round(value * factor)) if factor > 1 else min(value - 1, round(value * factor))
    return float(f"{1 - (1 - value) * (2 - factor) if 0.5 < value < 1 else value * factor:.6g}")


def sensitivity(campaign: Simulations, seeds: int, asked: str = "") -> tuple[list[SensitivityFigures], list[Missing]]:
    """Run every number of these names, separated by commas, or all, at its two other values in every world.

    Return a row for each value, and what failed. The campaign's work must be `varied(its folder)`. Raises
    InvalidSettingsError for a name that none has.
    """
    names = {one.strip() for one in asked.split(",") if one.strip()}
    chosen = [one for one in numbers() if not names or one.name in names]
    if unknown := names - {one.name for one in chosen}:
        raise InvalidSettingsError([f"no number of {POLICY} is called {', '.join(sorted(unknown))}"])
    before = {one: one.experiments(POLICY, seeds) for one in WORLDS}
    variants = {
        (number, factor): {one: [_in_variant(run, number, factor) for run in runs] for one, runs in before.items()}
        for number in chosen
        for factor in FACTORS
    }
    every = [before, *variants.values()]
    try:
        outcomes = campaign.run(run for by_world in every for runs in by_world.values() for run in runs)
    finally:
        shutil.rmtree(_copies(campaign.folder), ignore_errors=True)
    found = outcomes.results
    rows = [
        _against(
            number,
            factor,
            {
                one: [(found[a], found[b]) for a, b in zip(before[one], runs, strict=True)]
                for one, runs in by_world.items()
            },
        )
        for (number, factor), by_world in variants.items()
        if all(run in found for one, runs in by_world.items() for run in (*runs, *before[one]))
    ]
    return rows, outcomes.missing


def _in_variant(run: Experiment, number: Number, factor: float) -> Experiment:
    return msgspec.structs.replace(run, way=f"{number.file}:{number.name} × {factor}")


def _against(
    number: Number, factor: float, pairs: dict[World, list[tuple[SimulationResult, SimulationResult]]]
) -> SensitivityFigures:
    """Return what another value comes to. pairs: of runs with its own value and with the other."""
    over, gained = {}, {}
    for one, runs in pairs.items():
        question = one.experiments(POLICY, 1)[0].question()
        own, other = (fmean(cost_s(question, pair[which]) for pair in runs) for which in (0, 1))
        over[one] = other / own
        gained[one] = fmean(pair[1].in_sla - pair[0].in_sla for pair in runs)
    dearest = max(over, key=over.__getitem__)
    return SensitivityFigures(
        file=number.file,
        name=number.name,
        value=str(number.value),
        other=str(number.times(factor)),
        factor=factor,
        seeds=max(map(len, pairs.values())),
        worlds=len(pairs),
        cost=exp(fmean(map(log, over.values()))),
        dearest=over[dearest],
        dearest_world=name_of(dearest),
        in_sla=fmean(gained.values()),
        least_in_sla=min(gained.values()),
    )


def varied(folder: Path) -> "partial[SimulationResult]":
    """Return how an experiment is run with the number that its way names at another value."""
    return partial(_varied, _copies(folder))


def _copies(folder: Path) -> Path:
    return folder.absolute() / "variants"


class _Copy:
    """The sources with one number at another value, and a process that simulates with them."""

    def __init__(self, way: str, root: Path) -> None:
        self.way, self.root = way, root
        shutil.rmtree(root, ignore_errors=True)
        for package in PACKAGES:  # with the times of the files, and so with the machine code that is kept beside them
            shutil.copytree(ROOT / package, root / package)
        where, _, factor = way.partition(" × ")
        number = next(one for one in numbers(root) if f"{one.file}:{one.name}" == where)
        number.put(root, number.times(float(factor)))
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from bench.experiments import sensitivity; sensitivity.serve()"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, one: Experiment) -> SimulationResult:
        """Return the result. Raises ValueError with the reason why there is none."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(msgspec.json.encode(one) + b"\n")
        self.process.stdin.flush()
        kind, _, said = self.process.stdout.readline().partition(b" ")
        if kind != b"result":
            raise ValueError(said.decode().strip() or f"the process with {self.way} died")
        return msgspec.json.decode(said, type=SimulationResult)

    def end(self) -> None:
        """End the process: it has nothing more to read."""
        self.process.communicate()
        shutil.rmtree(self.root, ignore_errors=True)


_copy: list[_Copy] = []
"""The one of this process."""


def _varied(folder: Path, one: Experiment) -> SimulationResult:
    if not one.way:
        return simulated(one)
    if not _copy or _copy[0].way != one.way:
        while _copy:
            _copy.pop().end()
        _copy.append(_Copy(one.way, folder / str(os.getpid())))
    return _copy[0].run(msgspec.structs.replace(one, way=""))


def serve() -> None:
    """Simulate what comes, an experiment in each line, until nothing more comes."""
    for line in sys.stdin.buffer:
        try:
            found = simulated(msgspec.json.decode(line, type=Experiment))
            said = b"result " + msgspec.json.encode(found)
        except Exception as wrong:  # a number may break the policy: that is an answer, too
            said = f"wrong {type(wrong).__name__}: {wrong}".replace("\n", " ").encode()
        sys.stdout.buffer.write(said + b"\n")
        sys.stdout.buffer.flush()
