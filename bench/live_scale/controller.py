"""The real controller over members that are there already: it times its ticks, and moves partitions when it may."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from threading import Event

from prometheus_client.metrics import MetricWrapperBase

from autoscaler.live.composition import LiveAutoscaler
from autoscaler.live.launcher import Exit, Left
from autoscaler.live.launchers.processes import ProcessLauncher, ReplicaProcess
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, GroupObservation, Plan
from contracts.children import identity
from contracts.connection import Connection


class Seat(ReplicaProcess):
    """One of the members in a process that is not its own: what happens to that process is the bench's affair."""

    def exit(self) -> Exit | None:
        """It runs."""
        return None

    def ask_to_stop(self) -> None:
        """Nobody is told anything."""

    def kill(self) -> None:
        """Nobody is told anything."""


class Seats(ProcessLauncher):
    """Starts nothing: every member runs already, and is adopted. pids: member → process."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids

    def start(self, name: str) -> ReplicaProcess:
        """Return where the member sits."""
        return Seat(self._pids[name], identity(self._pids[name]))

    def remember(self, name: str, incarnation: str) -> None:
        """Keep no file."""

    def forget(self, name: str) -> None:
        """Keep no file."""

    def left_behind(self) -> Iterator[Left]:
        """Yield every member."""
        for name, pid in self._pids.items():
            yield Left(name, Seat(pid, identity(pid)))

    def last_log_line(self, name: str) -> str:
        """Nothing is known of what it said."""
        return ""


class Mover:
    """A policy that moves a quarter of the partitions whenever it is asked to, and else holds."""

    name = "mover"

    def __init__(self) -> None:
        self.asked = False
        self.observed = 0
        """Ticks at which everything was known."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Give every fourth partition to the replica behind its owner, or hold."""
        self.observed += 1
        names = observation.replica_names
        if not self.asked or len(names) < 2:
            return Decision(Action.HOLD, Plan(names, observation.assignment), "nothing is asked for")
        self.asked = False
        behind = dict(zip(names, (*names[1:], names[0]), strict=True))
        owners = {at: behind[owner] if at % 4 == 0 else owner for at, owner in observation.assignment.items()}
        return Decision(Action.REASSIGN, Plan(names, owners), "a quarter moves")


class Timed(LiveAutoscaler):
    """Notes how long each tick took."""

    def __init__(
        self,
        settings: AutoscalerSettings,
        connection: Connection,
        mover: Mover,
        pids: Mapping[str, int],
        *,
        stop: Event,
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(settings, connection, mover, {}, stop, warn=warn, launcher=Seats(pids))
        self.ticks_s: list[float] = []
        self.ticks_bytes: list[float] = []
        """What each wrote to the journal."""

    def taken(self) -> tuple[int, float]:
        """Return how many plans every member has taken, and the seconds that they took together."""
        told = _samples(self._metrics.plan_taken)
        return int(told["_count"]), told["_sum"]

    def _tick(self) -> None:
        began_s, before = time.perf_counter(), self._journal_bytes()
        super()._tick()
        self.ticks_bytes.append(self._journal_bytes() - before)
        self.ticks_s.append(time.perf_counter() - began_s)

    def _journal_bytes(self) -> float:
        return _samples(self._metrics.journal_bytes)["_total"]


def _samples(metric: MetricWrapperBase) -> dict[str, float]:
    """Return suffix → value. Of one metric: to collect all of ten thousand partitions would cost more than a tick."""
    (one,) = metric.collect()
    return {sample.name.removeprefix(one.name): sample.value for sample in one.samples}


def middle(values: Sequence[float]) -> float | None:
    """Return the median; None of nothing."""
    return median(values) if values else None
