"""Many experiments: results that are known are taken from the folder, the others are computed and kept there.

A result follows from its scenario and the code: equal files, equal results, whatever the commit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from bench.experiments.experiment import Experiment, simulated
from bench.experiments.workers import Failure, ResultT, Work, outcomes, usable_cores
from bench.simulation.result import SimulationResult
from contracts.validation import InvalidSettingsError

KeyT = TypeVar("KeyT")
ROOT: Final = Path(__file__).parents[2]
DECIDING: Final = (
    "contracts/*.py",
    "autoscaler/*.py",
    "autoscaler/estimation/**/*.py",
    "autoscaler/optimum/*.py",
    "autoscaler/packing/**/*.py",
    "autoscaler/policies/**/*.py",
    "autoscaler/simulator/**/*.py",
    "report/measures.py",
    "bench/scenario.py",
    "bench/sections.py",
    "bench/simulation/**/*.py",
    "loadgen/*.py",
)
"""What a simulated result follows from besides its scenario, the packing that it is compared with included."""


OWN: Final = {"tail-aware": "autoscaler/policies/tail_aware/", "clairvoyant": "autoscaler/optimum/"}
"""Policy → files of DECIDING that no other policy's results follow from: when they change, those of others stay."""


@cache
def code_version(root: Path = ROOT, policy: str = "") -> str:
    """Return a fingerprint of the files that results follow from: those of one policy, or of any."""
    digest = sha256()
    others = tuple(folder for owner, folder in OWN.items() if policy and policy != owner)
    for path in sorted({path for pattern in DECIDING for path in root.glob(pattern)}):
        name = path.relative_to(root).as_posix()
        if not name.startswith(others):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


FILE: Final = "results.jsonl"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One result."""

    key: str
    result: msgspec.Raw


class Store(Generic[ResultT]):
    """The results in a folder, all of one kind, by key. Each is on disk as soon as `add` returns."""

    def __init__(self, folder: Path, kind: type[ResultT]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self._kind = kind
        self._found: dict[str, ResultT] = {}
        self._read()

    def get(self, key: str) -> ResultT | None:
        """Return the result kept under `key`."""
        return self._found.get(key)

    def add(self, key: str, result: ResultT) -> None:
        """Keep a result."""
        self._found[key] = result
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(Line(key=key, result=msgspec.Raw(msgspec.json.encode(result)))) + b"\n")

    def _read(self) -> None:
        """Take in what is there; a line that was cut off, or that an older release wrote, is as if never measured."""
        text = self.path.read_bytes() if self.path.exists() else b""
        for one in text.splitlines():
            try:
                line = msgspec.json.decode(one, type=Line)
                self._found[line.key] = msgspec.json.decode(line.result, type=self._kind)
            except msgspec.DecodeError:
                continue
        if text and not text.endswith(b"\n"):
            with self.path.open("ab") as file:
                file.write(b"\n")  # so that the next line does not continue the one cut off


Announce = Callable[[str, int, int], None]
"""Told what was finished last, how many are done, and how many there are."""


def quietly(_said: str, _done: int, _total: int) -> None:
    """Announce nothing."""


@dataclass(frozen=True, slots=True)
class Campaign(Generic[ResultT]):
    """Where results are kept and how they are computed."""

    folder: Path
    processes: int = field(default_factory=usable_cores)
    announce: Announce = quietly
    work: Work[ResultT] = simulated  # type: ignore[assignment] # type variables have no defaults yet
    kind: type[ResultT] = SimulationResult  # type: ignore[assignment]

    def run(self, asked: Iterable[Experiment]) -> "Outcomes[ResultT]":
        """Run every experiment that is not known yet, each once. Whatever interrupts, finished ones stay finished.

        Raises InvalidSettingsError for an experiment whose scenario or settings are wrong, before anything is computed.
        """
        keys = {one: one.key(code_version(policy=one.policy)) for one in dict.fromkeys(asked)}
        store = Store(self.folder, self.kind)
        found = {one: kept for one, key in keys.items() if (kept := store.get(key)) is not None}
        failed: dict[Experiment, str] = {}
        self.announce("", len(found), len(keys))
        missing = [one for one in keys if one not in found]
        with closing(outcomes(missing, self.work, processes=self.processes)) as finished:
            for one, outcome in finished:
                if isinstance(outcome, Failure):
                    failed[one] = outcome.why
                else:
                    store.add(keys[one], outcome)
                    found[one] = outcome
                self.announce(str(one), len(found) + len(failed), len(keys))
        return Outcomes(found, failed)

    def results(self, asked: Iterable[Experiment]) -> dict[Experiment, ResultT]:
        """Return the result of every experiment, as `run`. Raises InvalidSettingsError where one fails."""
        outcomes = self.run(asked)
        if outcomes.failed:
            raise InvalidSettingsError([f"{one}: {why}" for one, why in outcomes.failed.items()])
        return outcomes.results


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A run without a result."""

    run: str
    why: str


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[ResultT]):
    """Results, and the reasons of experiments that have none."""

    results: dict[Experiment, ResultT]
    failed: dict[Experiment, str]

    @property
    def missing(self) -> list[Missing]:
        """What failed."""
        return [Missing(run=str(one), why=why) for one, why in self.failed.items()]

    def whole(self, asked: Mapping[KeyT, Sequence[Experiment]]) -> dict[KeyT, list[ResultT]]:
        """Return the results under each key of which no experiment failed: half of them would mislead."""
        return {
            key: [self.results[one] for one in some]
            for key, some in asked.items()
            if all(one in self.results for one in some)
        }


Simulations: TypeAlias = Campaign[SimulationResult]
"""One whose results are those of single groups."""
