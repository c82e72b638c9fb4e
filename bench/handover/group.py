"""A group of replicas under a steady load: plans are written to it, its processes are ended, its records are read."""

import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
from confluent_kafka import Producer

from autoscaler.live.kafka import client_config
from autoscaler.packing.owners import round_robin
from bench import BenchError
from bench.benchmark import Benchmark, Option, Row, Tools, check, environ_of
from bench.benchmarks.load import AHEAD_US, START_FILE, EvenLoad
from bench.handover.evidence import Evidence, Seen, Step, in_order
from bench.handover.windows import SERVICE_TIME_S, TAIL_US
from contracts.children import Child, collect_stop_signals, python_module
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.plan import Eviction, PlanRecord
from contracts.progress import ReplicaState
from contracts.rebalance_protocol import PLAN_PROTOCOLS, RebalanceProtocol
from contracts.topics import Group, Topic, qualified
from contracts.waiting import WaitTimeoutError, until
from loadgen.result import READY_FILE, GeneratorResult, all_exist

POLL_S: Final = 0.02
START_DEADLINE_S: Final = 60.0
STEP_DEADLINE_S: Final = 60.0
QUICK_STEPS_S: Final = 33.0
"""Quick form: no step begins later, so that the whole ends within 50 s if nothing is overdue."""
SETTLE_S: Final = 2.0
"""After the load has begun, before anything is measured: clients fetch metadata, the broker compiles."""
DRAIN_S: Final = 20.0
STOP_S: Final = 15.0
WRITE_S: Final = 10.0
SESSION_S: Final = 6.0
LONGEST_S, MOST_EVENTS = 7_200, 2_000_000
"""The load ends with whichever comes first."""


@dataclass(kw_only=True)
class GroupBenchmark(Benchmark):
    """A benchmark that acts on a group which serves, with the options of the group and its load."""

    runtime: Annotated[RebalanceProtocol, Option("Our consumer (incremental, eager), or another runtime.")] = (
        RebalanceProtocol.INCREMENTAL
    )
    heartbeat: Annotated[float, Option("Heartbeat of the members.", least=0.05, most=60, time=True)] = 3.0
    replicas: Annotated[int, Option("Replicas, as processes.", least=2, most=64)] = 3
    partitions: Annotated[int, Option("Partitions of their topic.", least=1, most=2000)] = 6
    rate: Annotated[int, Option("Events/s, to each partition in turn; 5 ms of work each.", least=1, most=5000)] = 150
    seed: Annotated[int, Option("Seed of the steps.")] = 1

    @property
    def takes_plan(self) -> bool:
        """Whether the replicas are our own."""
        return self.runtime in PLAN_PROTOCOLS

    @abstractmethod
    def act(self, group: "ServedGroup", announce: Callable[..., None]) -> None:
        """Take the steps. Raises WaitTimeoutError."""

    @staticmethod
    @abstractmethod
    def analyse(evidence: Evidence) -> Row:
        """Return the figures of what was seen."""

    def measure(self, case: str, tools: Tools) -> Row:
        """Let `act` act on a group, and return the figures of the evidence, and whether they count.

        Ctrl-C and an overdue step end the acting; what was measured until then stays.
        """
        problem, interrupted = "", False
        with tools.kafka("group", self.partitions) as connection, ExitStack() as stack:
            group = ServedGroup(self, connection, stack)
            group.begin()
            try:
                self.act(group, tools.announce)
            except WaitTimeoutError as overdue:
                problem = str(overdue)
            except KeyboardInterrupt:
                interrupted = True
            evidence, sent = group.finish()
        late_s, limit_s = (sent.lateness_p99_us or 0) / 1e6, sent.lateness_limit_us / 1e6
        if not problem and late_s > limit_s:
            problem = f"the load was late: p99 {late_s:.3f} s, above {limit_s} s; keep the machine quiet"
        verdict = {"valid": not problem, "problem": problem, "interrupted": interrupted}
        took = {"lateness_p99_s": late_s, "wall_s": round(time.monotonic() - group.began_s, 2)}
        return asdict(self) | self.analyse(evidence) | took | verdict


class ServedGroup:
    """A group that serves, and the notes of what was done to it. Its stack takes it down."""

    def __init__(self, setup: GroupBenchmark, connection: Connection, stack: ExitStack) -> None:
        self.setup, self.connection, self.began_s = setup, connection, time.monotonic()
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        self._producer = Producer(client_config(connection, linger_ms=0, enable_idempotence=True))
        self.assignment: dict[int, str] = {}
        """Partition → replica under the newest plan."""
        self.replicas: tuple[str, ...] = ()
        """Replicas of the newest plan."""
        self._epoch = 0
        self.seen = Seen(connection, setup.partitions, stack)
        self._stopping: dict[str, Child] = {}
        self.running: dict[str, Child] = {}
        """Replicas that were started and that no signal has ended."""
        seconds = min(LONGEST_S, MOST_EVENTS // setup.rate)
        self._load = EvenLoad(setup.rate, seconds, setup.partitions, linger_ms=0).generators(connection, self._folder)
        stack.callback(self._stop_all)
        self.interruptions: list[int] = stack.enter_context(collect_stop_signals())
        """Signals: the next wait ends with KeyboardInterrupt, never a start or a fetch."""
        self.steps: list[Step] = []
        self.quiet: list[tuple[int, int]] = []
        self.handovers = 0
        """Those whose new owner has been seen."""

    @property
    def late(self) -> bool:
        """Whether the quick form begins no further step."""
        return self.setup.quick and time.monotonic() > self.began_s + QUICK_STEPS_S

    def held_by(self, replica: str) -> list[int]:
        """Return the partitions that the newest plan gives to `replica`, ascending."""
        return sorted(partition for partition, owner in self.assignment.items() if owner == replica)

    def write_plan(
        self, changes: Mapping[int, str], replicas: tuple[str, ...] = (), evictions: tuple[Eviction, ...] = ()
    ) -> tuple[int, dict[int, str]]:
        """Write the newest plan with `changes`, and with other replicas if named; return its time and what it moves.

        Raises BenchError if the broker does not take it.
        """
        before, self.assignment = self.assignment, {**self.assignment, **changes}
        self.replicas, self._epoch, at_us = replicas or self.replicas, self._epoch + 1, now_us()
        plan = PlanRecord(
            epoch=self._epoch, at_us=at_us, replicas=self.replicas, assignment=self.assignment,
            reason="a step of the benchmark", evictions=evictions,
        )  # fmt: skip
        topic, group = (qualified(self.connection.namespace, one) for one in (Topic.PLANS, Group.PAYMENT))
        self._producer.produce(topic, msgspec.json.encode(plan), group)
        if self._producer.flush(WRITE_S):
            raise BenchError(f"plan {self._epoch} was not taken by the broker within {WRITE_S:g} s")
        return at_us, {one: target for one, target in changes.items() if before.get(one, target) != target}

    def start(self) -> str:
        """Start one more replica; return its name at once."""
        setup, name = self.setup, f"payment-{len(self.running) + len(self._stopping)}"
        session_s = max(SESSION_S, 2 * setup.heartbeat)
        settings = {"service_time_s": SERVICE_TIME_S, "heartbeat_s": setup.heartbeat, "session_s": session_s}
        how = {"rebalance_protocol" if setup.takes_plan else "runtime": setup.runtime, "replica": name}
        module = "services.payment" if setup.takes_plan else "services.comparators"
        environ = environ_of(self.connection, **settings, **how)
        child = Child(name, python_module(module), environ, self._folder / f"{name}.log")
        child.start()
        self.running[name] = child
        return name

    def start_warm(self) -> str:
        """Start one more and wait until it reports that it is ready; return its name. For runtimes that take a plan."""
        name, ready = self.start(), (ReplicaState.WARM, ReplicaState.MEMBER)
        is_warm = lambda: name in self.seen.reports and self.seen.reports[name].state in ready  # noqa: E731
        self.wait_for(is_warm, f"{name} is warm", START_DEADLINE_S)
        return name

    def end(self, name: str, *, kill: bool = False) -> int:
        """Send SIGTERM, or SIGKILL and wait for the end; return when it was sent, µs since the epoch."""
        child, at_us = self.running.pop(name), now_us()
        self._stopping[name] = child
        if kill:
            child.wait(0)
        else:
            child.terminate()
        return at_us

    def gone(self, name: str) -> bool:
        """Return whether a replica that got a signal has ended."""
        return self._stopping[name].exit_status is not None

    def _stop_all(self) -> None:
        children = [*self.running.values(), *self._stopping.values(), *self._load]
        for child in children:
            child.terminate()
        for child in children:
            child.wait(STOP_S)

    def begin(self) -> None:
        """Start replicas with equal shares of the partitions, and the load. Raises WaitTimeoutError.

        A group without a plan is awaited only until each partition has a finished event.
        """
        setup = self.setup
        names = tuple(f"payment-{number}" for number in range(setup.replicas))
        if setup.takes_plan:
            self.write_plan(round_robin(names, setup.partitions), names)
        for _ in names:
            self.start()
        if setup.takes_plan:
            self.wait_for_plan(START_DEADLINE_S + 3.0 * len(names))  # an interpreter's start costs a core
        for one in self._load:
            one.start()
        self.wait_for(partial(all_exist, self._folder, READY_FILE), "the load is ready", START_DEADLINE_S)
        (self._folder / START_FILE).write_text(str(now_us() + AHEAD_US))
        every = "an event of each partition is finished"
        self.wait_for(lambda: len(self.seen.owners()) == setup.partitions, every, START_DEADLINE_S)
        self.pump(SETTLE_S)

    def finish(self) -> tuple[Evidence, GeneratorResult]:
        """End the load, and wait for the last events; return all that was seen, and what the load reports."""
        load = self._load.pop()
        load.stop(STOP_S)
        try:
            sent = GeneratorResult.load(self._folder)
        except (OSError, msgspec.DecodeError) as missing:
            raise BenchError(f"the load did not write what it sent: {load.ending()}") from missing
        ends, until_s = self.seen.ends(), time.monotonic() + DRAIN_S
        while len({(one.partition, one.offset) for one in self.seen.rows}) < ends.sum() and time.monotonic() < until_s:
            self.pump(0.3)
        evidence = Evidence(
            ends=ends,
            served=in_order(self.seen.rows),
            steps=tuple(self.steps),
            quiet=tuple(self.quiet),
            committed=np.array(self.seen.committed, dtype=np.int64).reshape(-1, self.setup.partitions),
        )
        return evidence, sent

    def pump(self, length_s: float) -> None:
        """Take in what arrives for this duration. Raises BenchError when a process has ended by itself."""
        until_s = time.monotonic() + length_s
        while True:
            self.seen.poll(max(0.0, min(POLL_S, until_s - time.monotonic())))
            check([*self.running.values(), *self._load])
            if self.interruptions:
                self.interruptions.clear()
                raise KeyboardInterrupt
            if time.monotonic() >= until_s:
                return

    def rest(self, length_s: float) -> None:
        """Change nothing for a while, and note the quiet period."""
        from_us = now_us()
        self.pump(length_s)
        self.quiet.append((from_us, now_us()))

    def wait_for(self, condition: Callable[[], bool], what: str, within_s: float = STEP_DEADLINE_S) -> None:
        """Take in what arrives until `condition` holds. Raises WaitTimeoutError."""

        def holds() -> bool:
            if not (done := condition()):
                self.pump(POLL_S)
            return done

        until(holds, within_s, what, poll_s=0)

    def wait_for_plan(self, within_s: float = STEP_DEADLINE_S) -> None:
        """Wait until the replicas report the partitions that the newest plan gives them. Raises WaitTimeoutError."""
        in_force = lambda: self.seen.reported_owners(self.running) == self.assignment  # noqa: E731
        self.wait_for(in_force, "the newest plan is in force", within_s)

    def carry_out(
        self, kind: str, at_us: int, done: Callable[[], bool], what: str, moves: Mapping[int, str] | None = None
    ) -> None:
        """Wait until a step that began at `at_us` is `done`, and for the end of its window; keep it.

        Raises WaitTimeoutError; the step is kept then, too. moves: see Step.
        """
        overdue = None
        try:
            self.wait_for(done, f"{kind}: {what}")
        except WaitTimeoutError as late:
            overdue = late
        self.pump(TAIL_US / 1e6)
        self.steps.append(Step(kind, at_us, now_us(), moves))
        if overdue:
            raise overdue
