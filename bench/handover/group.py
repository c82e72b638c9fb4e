"""Run a group of replicas under a steady load, write plans to it, end its processes, and read its records."""

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from confluent_kafka import Producer

from autoscaler.live.foreign.members import Replicas
from autoscaler.packing.owners import round_robin
from bench import BenchError
from bench.benchmark import all_exist, check, environ_of
from bench.handover.consumers import Consumers
from bench.handover.evidence import Evidence, Observer, Step, in_order
from bench.handover.load import START_FILE, START_LEAD_US, load_generator
from bench.handover.windows import SERVICE_TIME_S, TAIL_US
from contracts.children import Child, collect_stop_signals, python_module
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.plan import Eviction, PlanRecord
from contracts.preflight import client_config
from contracts.progress import ReplicaState
from contracts.topics import Group, Topic, qualified
from contracts.waiting import WaitTimeoutError, until
from loadgen.result import READY_FILE, GeneratorResult

if TYPE_CHECKING:
    from bench.handover.benchmark import GroupBenchmark

POLL_S: Final = 0.02
START_DEADLINE_S: Final = 60.0
STEP_DEADLINE_S: Final = 60.0
SETTLE_S: Final = 2.0
"""Time from the start of the load until measuring, in which clients fetch metadata and the broker's JVM compiles."""
DRAIN_S: Final = 20.0
STOP_S: Final = 15.0
WRITE_S: Final = 10.0
LONGEST_S, MOST_EVENTS = 7_200, 2_000_000
"""Maximum duration (s) and number of events of the load."""


class ServedGroup:
    """A group that serves a load, and the steps that were taken with it. `stack` stops the group."""

    def __init__(self, setup: "GroupBenchmark", consumers: Consumers, connection: Connection, stack: ExitStack) -> None:
        self.setup, self.connection, self.began_s = setup, connection, time.monotonic()
        self.consumers, self.takes_plan = consumers, bool(consumers.by)
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        self._producer = Producer(client_config(connection, linger_ms=0, enable_idempotence=True))
        self.assignment: dict[int, str] = {}
        """Partition → replica in the newest plan."""
        self.replicas: tuple[str, ...] = ()
        """Replicas of the newest plan."""
        self._epoch = 0
        self._membership = consumers.membership(connection)
        if self._membership:
            self._membership.start()
            stack.callback(self._membership.close, leave=True)
        self.observer = Observer(connection, setup.partitions, stack)
        self._stopping: dict[str, Child] = {}
        self.running: dict[str, Child] = {}
        """Name → process of each replica that was started and not signalled."""
        seconds = min(LONGEST_S, MOST_EVENTS // setup.rate)
        self._load = [
            load_generator(connection, self._folder, rate=setup.rate, seconds=seconds, partitions=setup.partitions)
        ]
        """The process that sends the load; empty once it was stopped."""
        stack.callback(self._stop_all)
        self.interruptions: list[int] = stack.enter_context(collect_stop_signals())
        """Received signals. The next `read_for` raises KeyboardInterrupt, so nothing else is interrupted."""
        self.steps: list[Step] = []
        self.quiet: list[tuple[int, int]] = []
        self.handovers = 0
        """Number of moved partitions whose new owner has finished an event."""

    def partitions_of(self, replica: str) -> list[int]:
        """Return the partitions of `replica` in the newest plan, ascending."""
        return sorted(partition for partition, owner in self.assignment.items() if owner == replica)

    def write_plan(
        self, changes: Mapping[int, str], replicas: tuple[str, ...] = (), evictions: tuple[Eviction, ...] = ()
    ) -> tuple[int, dict[int, str]]:
        """Write a plan; return its time (µs since 1970) and its moves (partition → new owner).

        changes: owners that differ from those of the newest plan. replicas: empty: those of the newest plan.
        Raises BenchError if the broker does not acknowledge the plan.
        """
        before, self.assignment = self.assignment, {**self.assignment, **changes}
        self.replicas, self._epoch, at_us = replicas or self.replicas, self._epoch + 1, now_us()
        plan = PlanRecord(
            epoch=self._epoch, at_us=at_us, replicas=self.replicas, assignment=self.assignment,
            reason="a step of the benchmark", evictions=evictions,
        )  # fmt: skip
        topic, group = (qualified(self.connection.namespace, name) for name in (Topic.PLANS, Group.PAYMENT))
        if self._membership:
            self._membership.carry_out(plan, Replicas(dict.fromkeys(self.replicas, "")))
        else:
            self._producer.produce(topic, msgspec.json.encode(plan), group)
        if self._producer.flush(WRITE_S):
            raise BenchError(f"the broker did not acknowledge plan {self._epoch} within {WRITE_S:g} s")
        return at_us, {number: target for number, target in changes.items() if before.get(number, target) != target}

    def start(self) -> str:
        """Start another replica, and return its name at once."""
        name = f"payment-{len(self.running) + len(self._stopping)}"
        module, settings = self.consumers.replica()
        environ = environ_of(self.connection, service_time_s=SERVICE_TIME_S, replica=name, **settings)
        child = Child(name, python_module(module), environ, self._folder / f"{name}.log")
        child.start()
        self.running[name] = child
        return name

    def start_warm(self) -> str:
        """Start another replica, wait until it is ready, and return its name. A join that rebalances is a step."""
        at_us, name, ready = now_us(), self.start(), (ReplicaState.WARM, ReplicaState.MEMBER)

        def is_warm() -> bool:
            report, planned = self.observer.reports.get(name), self._membership
            is_member = planned is None or name in {member.client_id for member in planned.view.members}
            return bool(report and report.state in ready and is_member)

        self.wait_for(is_warm, f"{name} is warm", START_DEADLINE_S)
        if self._membership:  # the group rebalances when a member joins
            self.steps.append(Step("join", at_us, now_us(), {}))
        return name

    def end(self, name: str, *, kill: bool = False) -> int:
        """Send SIGTERM; `kill`: send SIGKILL and wait for the end. Return the time of the signal, µs since 1970."""
        child, at_us = self.running.pop(name), now_us()
        self._stopping[name] = child
        if kill:
            child.wait(0)
        else:
            child.terminate()
        return at_us

    def has_ended(self, name: str) -> bool:
        """Return whether a replica that received a signal has ended."""
        return self._stopping[name].exit_status is not None

    def _stop_all(self) -> None:
        children = [*self.running.values(), *self._stopping.values(), *self._load]
        for child in children:
            child.terminate()
        for child in children:
            child.wait(STOP_S)

    def begin(self) -> None:
        """Start replicas with equal numbers of partitions, then the load, and wait until each partition is served.

        Raises WaitTimeoutError.
        """
        setup = self.setup
        names = tuple(f"payment-{number}" for number in range(setup.replicas))
        if self.takes_plan:
            self.write_plan(round_robin(names, setup.partitions), names)
        for _ in names:
            self.start()
        if self.takes_plan:
            self.wait_for_plan(START_DEADLINE_S + 3.0 * len(names))  # Python needs a core to start
        for generator in self._load:
            generator.start()
        self.wait_for(partial(all_exist, self._folder, READY_FILE), "the load is ready", START_DEADLINE_S)
        (self._folder / START_FILE).write_text(str(now_us() + START_LEAD_US))
        every = "an event of each partition is finished"
        self.wait_for(lambda: len(self.observer.owners()) == setup.partitions, every, START_DEADLINE_S)
        self.read_for(SETTLE_S)

    def finish(self) -> tuple[Evidence, GeneratorResult]:
        """Stop the load, wait for the last events, and return the evidence and the result of the load generator."""
        load = self._load.pop()
        load.terminate()
        load.wait(STOP_S)
        try:
            sent = GeneratorResult.load(self._folder)
        except (OSError, msgspec.DecodeError) as error:
            raise BenchError(f"the load generator wrote no result: {load.ending()}") from error
        ends, until_s = self.observer.ends(), time.monotonic() + DRAIN_S
        rows = self.observer.rows
        while len({(row.partition, row.offset) for row in rows}) < ends.sum() and time.monotonic() < until_s:
            self.read_for(0.3)
        evidence = Evidence(
            ends=ends,
            served=in_order(self.observer.rows),
            steps=tuple(self.steps),
            quiet=tuple(self.quiet),
            claims=tuple(sorted(chain.from_iterable(self.observer.claims.values()))),
            committed=np.array(self.observer.committed, dtype=np.int64).reshape(-1, self.setup.partitions),
        )
        return evidence, sent

    def read_for(self, duration_s: float) -> None:
        """Read records and reports for this duration. Raises BenchError if a process has ended unexpectedly."""
        until_s = time.monotonic() + duration_s
        while True:
            self.observer.poll(max(0.0, min(POLL_S, until_s - time.monotonic())))
            check([*self.running.values(), *self._load])
            if self.interruptions:
                self.interruptions.clear()
                raise KeyboardInterrupt
            if time.monotonic() >= until_s:
                return

    def rest(self, duration_s: float) -> None:
        """Take no step for this duration, and record the quiet period."""
        from_us = now_us()
        self.read_for(duration_s)
        self.quiet.append((from_us, now_us()))

    def wait_for(self, condition: Callable[[], bool], what: str, within_s: float = STEP_DEADLINE_S) -> None:
        """Read records and reports until `condition` is true. Raises WaitTimeoutError, which names `what`."""

        def is_met() -> bool:
            if not (done := condition()):
                self.read_for(POLL_S)
            return done

        until(is_met, within_s, what, poll_s=0)

    def wait_for_plan(self, within_s: float = STEP_DEADLINE_S) -> None:
        """Wait until the replicas report that they own their partitions of the newest plan. Raises WaitTimeoutError."""
        in_force = lambda: self.observer.reported_owners(self.running) == self.assignment  # noqa: E731
        self.wait_for(in_force, "the newest plan is in force", within_s)

    def carry_out(
        self, kind: str, at_us: int, done: Callable[[], bool], what: str, moves: Mapping[int, str] | None = None
    ) -> None:
        """Wait until a step that began at `at_us` is `done` and its window has ended; record the step.

        moves: see Step. Raises WaitTimeoutError if the step takes too long; the step is recorded all the same.
        """
        overdue = None
        try:
            self.wait_for(done, f"{kind}: {what}")
        except WaitTimeoutError as error:
            overdue = error
        self.read_for(TAIL_US / 1e6)
        self.steps.append(Step(kind, at_us, now_us(), moves))
        if overdue:
            raise overdue
