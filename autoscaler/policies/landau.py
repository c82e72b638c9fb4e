"""The controller of Landau et al. 2024 (arXiv:2402.06085). It packs write speeds over a window by a chosen heuristic.

Written after the paper and checked against the published controller. It packs all partitions again, starting from their
present owners, if a partition has no owner, if a replica's partitions are written faster than it can serve, or if the
last packing is `interval_s` ago. It ignores lag and handovers.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import change, describe_unowned, no_change, number
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Rules, Settings, must, setting

Speeds = NDArray[np.float64]


class Packing:
    """Open consumers with their loads, and the consumers of the placed partitions. An open consumer stays open."""

    def __init__(
        self, choose: Callable[..., Any], loads: Mapping[int, float], owners: Mapping[int, int], capacity: float
    ) -> None:
        self._choose, self.loads, self.owners, self._capacity = choose, loads, owners, capacity
        self._open: list[int] = []
        """Open consumers, ascending."""
        self._load: dict[int, float] = {}
        self._unused = count()
        self.consumer_of: dict[int, int] = {}

    def decreasing(self, partitions: Iterable[int]) -> list[int]:
        """Return the partitions, largest load first. Equal loads keep their order."""
        return sorted(partitions, key=lambda partition: -self.loads[partition])

    def open(self, consumer: int) -> None:
        """Open a consumer."""
        insort(self._open, consumer)
        self._load[consumer] = 0.0

    def fits(self, partition: int, consumer: int) -> bool:
        """Return whether an open consumer has room for a partition."""
        return self._load[consumer] + self.loads[partition] <= self._capacity

    def find(self, partition: int) -> int | None:
        """Return the open consumer that is chosen; None: the partition fits nowhere. Ties: the lowest number."""
        load_of, load, most = self._load, self.loads[partition], self._capacity
        fitting = (consumer for consumer in self._open if load_of[consumer] + load <= most)
        return self._choose(fitting, key=load_of.__getitem__, default=None)  # type: ignore[no-any-return]

    def put(self, partition: int, consumer: int) -> None:
        """Place a partition on an open consumer."""
        self._load[consumer] += self.loads[partition]
        self.consumer_of[partition] = consumer

    def place(self, partitions: Iterable[int]) -> None:
        """Place partitions one by one. If none fits, open the partition's owner, or the lowest consumer not open."""
        for partition in partitions:
            consumer = self.find(partition)
            if consumer is None:
                consumer = self.owners.get(partition, -1)
                if consumer < 0 or consumer in self._load:
                    consumer = next(number for number in self._unused if number not in self._load)
                self.open(consumer)
            self.put(partition, consumer)


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit:
    """Packs in three steps: rank the previous consumers, rebuild each in this order, place the remaining partitions.

    Consumers keep large partitions and pass on small ones. None of the four variants checks whether a move is needed,
    so small partitions move to earlier consumers even if nothing is gained. If a consumer must be opened for a
    partition, it is the partition's owner, unless this owner is open already. The choice between open consumers ignores
    the owner.
    """

    choose: Callable[..., Any]
    """Chooses by load among the open consumers into which a partition fits: `max` the fullest, `min` the emptiest."""
    by_largest: bool = False
    """Whether consumers are ranked by their largest partition; else by the sum. Both use the new loads."""

    def __call__(self, loads: Mapping[int, float], owners: Mapping[int, int], capacity: float) -> dict[int, int]:
        """Return partition → number of its new consumer, for every partition of `loads`.

        loads: rate of each partition, in any unit, finite and not negative. Equal loads keep their order.
        owners: previous consumers, numbered from 0. A partition without one is new. One missing in `loads` is ignored.
        capacity: limit of a consumer, in the unit of the loads. A load above it gets a consumer of its own.
        """
        packing = Packing(self.choose, loads, owners, capacity)
        self._pack(packing)
        return {partition: packing.consumer_of[partition] for partition in loads}

    def _pack(self, packing: Packing) -> None:
        """Pass on small partitions of each consumer while they fit elsewhere. Keep large ones while they fit here."""
        owned: dict[int, list[int]] = {}
        rank: dict[int, float] = {}
        for partition in filter(packing.owners.__contains__, packing.loads):
            owner, load = packing.owners[partition], packing.loads[partition]
            owned.setdefault(owner, []).append(partition)
            before = rank.get(owner, 0.0)
            rank[owner] = max(before, load) if self.by_largest else before + load
        rest = [partition for partition in packing.loads if partition not in packing.owners]
        for consumer in sorted(owned, key=lambda consumer: (-rank[consumer], consumer)):
            own = packing.decreasing(owned[consumer])
            while own and (to := packing.find(own[-1])) is not None:  # else no larger one fits either
                packing.put(own.pop(), to)
            if not own:
                continue
            packing.open(consumer)
            packing.put(own.pop(0), consumer)
            while own and packing.fits(own[0], consumer):
                packing.put(own.pop(0), consumer)
            rest += own  # all smaller ones leave, too, even those that would fit
        packing.place(packing.decreasing(rest))


PACKERS: Final = {
    "mwf": ModifiedAnyFit(min),
    "mbf": ModifiedAnyFit(max),
    "mwfp": ModifiedAnyFit(min, by_largest=True),
    "mbfp": ModifiedAnyFit(max, by_largest=True),
}
"""Modified Worst Fit and Best Fit, ranked by the sum or by the largest partition."""


@dataclass(frozen=True, kw_only=True)
class LandauSettings(Settings):
    """Parameters of the paper and the heuristic. Raises ValueError naming every mistake."""

    packer: str = setting("MWF")
    """Heuristic: MWF, MBF, MWFP or MBFP. The paper chooses MWF."""
    window_s: float = setting(30.0, "s", above=0)
    """Time over which a partition's write speed is averaged."""
    interval_s: float = setting(30.0, "s", least=0)
    """Longest time between two packings: the iteration of the paper's model."""
    fill: float = setting(0.75, "share", above=0, most=1)
    """Share of μ that a packing uses; 100/133 in the paper. A partition with a greater load gets its own replica."""
    RULES: ClassVar[Rules] = (
        must("packer", lambda of: of["packer"].lower() in PACKERS, f"known are {', '.join(PACKERS)}"),
    )


class Landau:
    """Packs average write speeds by a chosen heuristic, every 30 s and when a replica is full (Landau et al. 2024).

    The paper's consumers are replicas here, numbered by the ordinal of their names. Speeds above μ count as μ.
    """

    name = "landau"

    def __init__(self, settings: PolicySettings, options: LandauSettings | None = None) -> None:
        self.settings = settings
        self.options = options or LandauSettings()
        self._written: deque[tuple[float, Speeds]] = deque()
        """(Time of a tick, events written to each partition since the first tick)."""
        self._packed_s = -math.inf

    def decide(self, observation: GroupObservation) -> Decision:
        """Pack if a partition has no owner, a replica is full, or `interval_s` is over."""
        speeds = np.minimum(self._write_speeds(observation), observation.service_rate)
        since_s, interval_s = observation.at_s - self._packed_s, self.options.interval_s
        due = f"{number(since_s)} s since the last packing" if since_s < math.inf else "first packing"
        why = describe_unowned(observation) or _full(observation, speeds) or due * (since_s >= interval_s - 1e-6)
        if not why:
            why = f"no replica is full, and the next packing is in {number(interval_s - since_s)} s"
            return no_change(observation, f"{why}: no change at {observation.requested_replicas}")
        self._packed_s = observation.at_s
        return change(observation, self._pack(observation, speeds), f"{why}, packed by {self.options.packer}")

    def _write_speeds(self, observation: GroupObservation) -> Speeds:
        """Return the events/s written to each partition over the window, or its arrival rates at the first tick."""
        rates = np.array([load.arrival_rate for load in observation.partitions], np.float64)
        if self._written and len(self._written[-1][1]) != len(rates):
            self._written.clear()  # partitions were added
        if not self._written:
            self._written.append((observation.at_s, np.zeros_like(rates)))
            return rates
        last_s, written = self._written[-1]
        self._written.append((observation.at_s, written + rates * (observation.at_s - last_s)))
        while len(self._written) > 2 and self._written[1][0] <= observation.at_s - self.options.window_s:
            self._written.popleft()
        (began_s, before), (now_s, now) = self._written[0], self._written[-1]
        return np.asarray((now - before) / (now_s - began_s)) if now_s > began_s else rates

    def _pack(self, observation: GroupObservation, speeds: Speeds) -> Plan:
        """Return the packing as a plan. Replicas without partitions leave."""
        numbers = _consumer_numbers(observation, self.settings.replica_prefix)
        partitions = [load.partition for load in observation.partitions]
        owners = {partition: numbers[owner] for partition, owner in observation.assignment.items() if owner in numbers}
        packer = self.options.packer.lower()
        capacity = self.options.fill * observation.service_rate
        chosen = PACKERS[packer](dict(zip(partitions, speeds.tolist(), strict=True)), owners, capacity)
        names = {consumer: name for name, consumer in numbers.items()}
        taken = {*names.values(), *observation.assignment.values()}
        for consumer in sorted(set(chosen.values()) - names.keys()):
            name = f"{self.settings.replica_prefix}-{consumer}"
            names[consumer] = next(fresh_names(self.settings.replica_prefix, taken)) if name in taken else name
            taken.add(names[consumer])
        used = {names[consumer] for consumer in chosen.values()}
        stay = [name for name in observation.replica_names if name in used]
        join = [name for consumer, name in sorted(names.items()) if name in used and name not in stay]
        return Plan((*stay, *join), {partition: names[consumer] for partition, consumer in chosen.items()})


def _full(observation: GroupObservation, speeds: Speeds) -> str:
    """Return a text about the replica with the highest write speed if that exceeds μ; else an empty one."""
    written: dict[str, float] = {}
    for load, speed in zip(observation.partitions, speeds.tolist(), strict=True):
        owner = observation.assignment.get(load.partition, "")
        written[owner] = written.get(owner, 0.0) + speed
    worst = max(written, key=lambda name: written[name], default="")
    if written.get(worst, 0.0) <= observation.service_rate * (1 + 1e-9):
        return ""
    return f"{worst} is full: {number(written[worst])} events/s written, {number(observation.service_rate)} served (μ)"


def _consumer_numbers(observation: GroupObservation, prefix: str) -> dict[str, int]:
    """Return the consumer number of each replica: the ordinal of its name, or a number above all others.

    No packer opens a new consumer above the number of partitions, so these numbers stay free.
    """
    ordinals = {name: name.removeprefix(f"{prefix}-") for name in observation.replica_names}
    numbers = {
        name: int(ordinal) for name, ordinal in ordinals.items() if ordinal.isdecimal() and str(int(ordinal)) == ordinal
    }
    following = max([len(observation.partitions), *numbers.values()]) + 1
    others = [name for name in observation.replica_names if name not in numbers]
    return numbers | {name: following + place for place, name in enumerate(others)}
