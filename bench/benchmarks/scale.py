"""Where the controller and its group break first: many light members, many partitions, one broker."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Annotated, Any, Final

import msgspec
import psutil

from autoscaler.live.composition import LiveAutoscaler
from autoscaler.live.launchers.processes import PidFile, ProcessLauncher
from autoscaler.live.metrics import JOURNAL_BYTES, PLAN_TAKEN
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.settings import REPLICA_PREFIX
from bench import BenchError
from bench.benchmark import Benchmark, Option, Row, Tools, check, environ_of
from contracts.children import Child, identity, python_module, signals_noted
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.waiting import NotWithinError, until

IN_A_PROCESS: Final = 100
"""Members."""
PLANS, QUICK_PLANS = 5, 2
REST_S, QUICK_REST_S = 20.0, 6.0
START_S, START_EACH_S, START_EACH_PARTITION_S = 60.0, 0.05, 6e-5
"""Each member decodes which broker leads which partition: 0.25 s for ten thousand."""
OPEN_EACH_S: Final = 0.02
"""A broker opens a few hundred new partitions a second."""
PLAN_S: Final = 60.0
DAY_S: Final = 86_400.0


@dataclass(kw_only=True)
class Scale(Benchmark):
    """Measure ticks, plans and journal of the controller with many members and partitions on one broker."""

    sizes: Annotated[str, Option("MEMBERSxPARTITIONS, separated by commas.")] = "10x100,50x1000"

    def cases(self) -> Sequence[str]:
        """Return the sizes. Raises ValueError."""
        return ["{}x{}".format(*_size(one)) for one in self.sizes.split(",")[: 1 if self.quick else None]]

    def measure(self, case: str, tools: Tools) -> Row:
        """Start the members, move a quarter of the partitions several times, and rest."""
        members, partitions = _size(case)
        found: Row = {"members": members, "partitions": partitions, "problem": ""}
        with tools.kafka("scale", partitions) as connection, ExitStack() as stack:
            try:
                _measure(_Group(connection, members, partitions, stack), tools, found, quick=self.quick)
            except (NotWithinError, BenchError) as overdue:
                found["problem"] = str(overdue)
        return found


def _measure(group: "_Group", tools: Tools, found: Row, *, quick: bool) -> None:
    """Put the figures into `found`, one after the other. Raises NotWithinError, BenchError, KeyboardInterrupt."""
    timed, mover = group.timed, group.mover
    tools.announce(said="members start")
    with closing(ProgressReader(group.connection)) as reports:
        group.until(lambda: len(reports.poll()) == group.members, group.start_s, "members start")
    began_s = steady_s()
    group.controller.start()
    group.until(lambda: timed.taken()[0] > 0 and mover.observed > 0, PLAN_S, "the first plan is taken")
    found["first_plan_s"], plans_s, moving = steady_s() - began_s, list[float](), len(timed.ticks_s)
    for number in range(2, 2 + (QUICK_PLANS if quick else PLANS)):
        tools.announce(said=f"plan {number}")
        count, total_s = timed.taken()
        mover.asked = True
        group.until(lambda before=count: timed.taken()[0] > before, PLAN_S, f"plan {number} is taken")  # type: ignore[misc]
        plans_s.append(timed.taken()[1] - total_s)
    found |= {"plan_taken_s": median(plans_s), "plan_taken_max_s": max(plans_s)}
    tools.announce(said="rest")
    begin, since_s, rest, rest_s = group.counters(), steady_s(), len(timed.ticks_s), QUICK_REST_S if quick else REST_S
    group.until(lambda: steady_s() - since_s >= rest_s, 2 * rest_s, "rest")
    rates = {name: (value - begin[name]) / (steady_s() - since_s) for name, value in group.counters().items()}
    found |= {"tick_s": median(timed.ticks_s[rest:]), "tick_max_s": max(timed.ticks_s[moving:])}
    found["journal_mb_per_day"] = rates.pop("journal_bytes") * DAY_S / 1e6
    found |= rates


class _Group:
    """The members, which are killed at the end, and the controller that adopts them."""

    def __init__(self, connection: Connection, members: int, partitions: int, stack: ExitStack) -> None:
        self.connection, self.members, self._hosts = connection, members, list[Child]()
        self._interruptions = stack.enter_context(signals_noted())
        self._broker = next(one for one in psutil.Process().children() if "java" in one.name())
        self._folder = Path(stack.enter_context(TemporaryDirectory()))
        each_s = START_EACH_S + START_EACH_PARTITION_S * partitions
        self.start_s = START_S + 2 * each_s * min(members, IN_A_PROCESS) + OPEN_EACH_S * partitions
        for first in range(0, members, IN_A_PROCESS):
            self._host(stack, first, each_s)
        settings = AutoscalerSettings(
            policy="static", payment_partitions=partitions, state_dir=str(self._folder),
            initial_replicas=members, max_replicas=members,
        )  # fmt: skip
        self.mover, stop = _Mover(), Event()
        launcher = ProcessLauncher(self._folder)
        self.timed = _Timed(settings, connection, self.mover, {}, stop, warn=lambda _: None, launcher=launcher)
        stack.callback(self.timed.close)
        self.controller = Thread(target=self.timed.run, name="controller")
        stack.callback(self._end_controller, stop)

    def _end_controller(self, stop: Event) -> None:
        stop.set()
        if self.controller.ident is not None:
            self.controller.join()

    def _host(self, stack: ExitStack, first: int, each_s: float) -> None:
        """Start a process of members, each of which the launcher adopts by a file."""
        count, name = min(IN_A_PROCESS, self.members - first), f"members-{first}"
        environ = environ_of(self.connection, replica=REPLICA_PREFIX, first=first, count=count, each_s=each_s)
        host = Child(name, python_module("bench.benchmarks.light"), environ, self._folder / f"{name}.log")
        host.start()
        stack.callback(host.wait)
        stack.callback(host.kill)
        self._hosts.append(host)
        entry = msgspec.json.encode(PidFile(pid=host.pid or 0, who=identity(host.pid or 0)))
        (self._folder / "replicas").mkdir(exist_ok=True)
        for number in range(first, first + count):
            (self._folder / "replicas" / f"{REPLICA_PREFIX}-{number}.json").write_bytes(entry)

    def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        def done() -> bool:
            if self._interruptions:
                raise KeyboardInterrupt
            check(self._hosts)
            return condition()

        until(done, within_s, what)

    def counters(self) -> dict[str, float]:
        return {
            "broker_cores": sum(self._broker.cpu_times()[:2]),
            "controller_cores": time.process_time(),
            "members_cores": float(sum(sum(psutil.Process(one.pid).cpu_times()[:2]) for one in self._hosts)),
            "journal_bytes": _samples(self.timed._metrics[JOURNAL_BYTES])["_total"],
        }


class _Mover:
    """A policy that moves a quarter of the partitions whenever it is asked to, and otherwise changes nothing."""

    name = "mover"

    def __init__(self) -> None:
        self.asked = False
        self.observed = 0

    def decide(self, observation: GroupObservation) -> Decision:
        self.observed += 1
        names = observation.replica_names
        if not self.asked or len(names) < 2:
            return Decision(Action.HOLD, Plan(names, observation.assignment), "no move was requested")
        self.asked = False
        after = dict(zip(names, (*names[1:], names[0]), strict=True))
        owners = {at: after[owner] if at % 4 == 0 else owner for at, owner in observation.assignment.items()}
        return Decision(Action.REASSIGN, Plan(names, owners), "a quarter moves")


class _Timed(LiveAutoscaler):
    """The real autoscaler, which notes the wall time of each tick."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.ticks_s: list[float] = []

    def taken(self) -> tuple[int, float]:
        told = _samples(self._metrics[PLAN_TAKEN])
        return int(told["_count"]), told["_sum"]

    def _tick(self) -> None:
        began_s = time.perf_counter()
        super()._tick()
        self.ticks_s.append(time.perf_counter() - began_s)


def _samples(metric: Any) -> dict[str, float]:
    (one,) = metric.collect()
    return {sample.name.removeprefix(one.name): sample.value for sample in one.samples}


def _size(text: str) -> tuple[int, int]:
    members, cross, partitions = text.strip().partition("x")
    if not (cross and members.isdigit() and partitions.isdigit() and 0 < int(members) <= int(partitions)):
        raise ValueError(f"--sizes {text!r}: must be MEMBERSxPARTITIONS, as 50x1000, with a partition for each member")
    return int(members), int(partitions)
