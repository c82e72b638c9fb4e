"""One experiment: replicas, load and readers, built up and taken down in order, and what was done."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import Producer

from bench import BenchError
from bench.handover.children import Children, processes
from bench.handover.evidence import Evidence, Move, Served, Step
from bench.handover.load import SENT_FILE, LoadSettings, Sent
from bench.handover.outcomes import Outcome
from bench.handover.plans import Plans
from bench.handover.readers import CommitReader, Reports, TimelineReader
from bench.handover.setup import SERVICE_TIME_S, Question, Setup
from bench.handover.windows import TAIL_US
from contracts.children import signals_noted
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.progress import ReplicaState
from contracts.topics import Topic, qualified
from contracts.validation import as_environment
from loadgen.orders import Orders, payment_event

POLL_S: Final = 0.02
START_DEADLINE_S: Final = 60.0
START_EACH_S: Final = 3.0
"""More for each replica: an interpreter's start costs a core most of a second."""
SETTLE_S: Final = 2.0
"""After the load has begun, before anything is measured: clients fetch metadata, the broker compiles."""
DRAIN_DEADLINE_S: Final = 20.0
QUICK_DRAIN_DEADLINE_S: Final = 5.0
SEND_DEADLINE_S: Final = 10.0
SESSION_S: Final = 6.0
LATENESS_LIMIT_S: Final = 0.025
"""A generator whose p99 lateness exceeds this makes the run invalid."""

Start = Callable[[Path], Children]
"""Makes what starts replicas; the folder is for their logs."""
Announce = Callable[[str, int], None]
"""Hears what is being done, and how much of it is done."""


class OverdueError(BenchError):
    """What an experiment waited for did not happen in time."""


class Experiment:
    """A group that serves, the hand that acts on it, and the notes of what was done. Its stack takes it down."""

    def __init__(self, setup: Setup, connection: Connection, stack: ExitStack, start: Start | None = None) -> None:
        self.setup = setup
        self.connection = connection
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        sends_at_once = {"linger.ms": "0", "enable.idempotence": "true", "log_level": "0"}
        self._producer = Producer(self.connection.librdkafka() | sends_at_once)
        self.plans = Plans(self.connection, self._producer)
        self.timeline, self.reports = TimelineReader(self.connection), Reports(self.connection)
        self._commits = CommitReader(self.connection, setup.partitions)
        for reader in (self.timeline, self.reports, self._commits):
            stack.callback(reader.close)
        load = LoadSettings(rate=setup.rate, partitions=setup.partitions, seed=setup.seed, out_dir=str(self._folder))
        environ = {**os.environ, **as_environment(self.connection)}
        payment = "services.payment" if setup.takes_plan else "services.comparators"
        self.replicas = start(self._folder) if start else processes(self._folder, payment, environ | settings_of(setup))
        self._load = processes(self._folder, "bench.handover.load", environ | as_environment(load))
        for each in (self.replicas, self._load):
            stack.callback(each.close)
        self.asked_to_stop: list[int] = []
        """Signals that have come: the next wait ends with KeyboardInterrupt."""
        self._slow_us: list[int] = []
        self.steps: list[Step] = []
        self.quiet: list[tuple[int, int]] = []
        self.handovers = 0
        """Those whose new owner has been seen."""

    def begin(self) -> None:
        """Start replicas, partitions dealt out evenly, and the load. Raises OverdueError.

        Without a plan nothing is waited for but the first events.
        """
        setup = self.setup
        names = tuple(f"payment-{number}" for number in range(setup.replicas))
        if setup.takes_plan:
            self.plans.write({number: names[number % len(names)] for number in range(setup.partitions)}, names)
        for _ in names:
            self.replicas.start()
        if setup.takes_plan:
            self.wait_for_plan(START_DEADLINE_S + START_EACH_S * len(names))
        self._load.start("load")
        self.wait_for(
            lambda: len(self.timeline.owners()) == setup.partitions,
            "an event of each partition is finished",
            START_DEADLINE_S,
        )
        self.pump(SETTLE_S)

    def end(self, deadline_s: float) -> Sent:
        """End the load and wait, up to the deadline, until what it sent has been finished; return what it sent."""
        self._load.close()
        try:
            sent = msgspec.json.decode((self._folder / SENT_FILE).read_bytes(), type=Sent)
        except (OSError, msgspec.DecodeError) as missing:
            said = self._load.last_words("load")
            raise BenchError(f"the load did not say what it sent: {said}") from missing
        acknowledged = len(sent.acknowledged_us)
        until_s = time.monotonic() + deadline_s
        while len({row.intended_us for row in self.timeline.rows}) < acknowledged and time.monotonic() < until_s:
            self.pump(0.3)
        return sent

    def start_replica(self) -> str:
        """Start one more and wait until it says that it is ready; return its name. For runtimes that take a plan."""
        name, ready = self.replicas.start(), (ReplicaState.WARM, ReplicaState.MEMBER)
        self.wait_for(
            lambda: name in self.reports.newest and self.reports.newest[name].state in ready,
            f"{name} is warm",
            START_DEADLINE_S,
        )
        return name

    def send_slow(self, partition: int) -> None:
        """Send one event that takes a second to serve (its order's id begins with slow-), intended now."""
        at_us = now_us()
        order = Orders(f"{self.connection.namespace}-slow", self.setup.seed).order(len(self._slow_us))
        slow = msgspec.structs.replace(order, order_id=f"slow-{order.order_id}")
        record = payment_event(slow, at_us, partition)(at_us)
        topic = qualified(self.connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._producer.produce(topic, record.value, record.key, partition)
        if self._producer.flush(SEND_DEADLINE_S):
            raise BenchError(f"an event was not taken by the broker within {SEND_DEADLINE_S:g} s")
        self._slow_us.append(at_us)

    def pump(self, length_s: float) -> None:
        """Take in what arrives for so long. Raises BenchError when a process has ended by itself."""
        until_s = time.monotonic() + length_s
        while True:
            self.timeline.poll(max(0.0, min(POLL_S, until_s - time.monotonic())))
            self.reports.poll()
            self._commits.poll()
            self.replicas.check()
            self._load.check()
            if self.asked_to_stop:
                self.asked_to_stop.clear()
                raise KeyboardInterrupt
            if time.monotonic() >= until_s:
                return

    def rest(self, length_s: float) -> None:
        """Change nothing for a while, and note the quiet stretch."""
        from_us = now_us()
        self.pump(length_s)
        self.quiet.append((from_us, now_us()))

    def wait_for(self, condition: Callable[[], bool], what: str, deadline_s: float) -> None:
        """Take in what arrives until `condition` holds. Raises OverdueError."""
        until_s = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > until_s:
                raise OverdueError(f"not within {deadline_s:.0f} s: {what}; {self.replicas.trouble}".rstrip("; "))
            self.pump(POLL_S)

    def wait_for_plan(self, deadline_s: float) -> None:
        """Wait until the replicas report what the newest plan gives them. Raises OverdueError."""
        self.wait_for(
            lambda: self.reports.owners(self.replicas.running) == self.plans.assignment,
            f"plan {self.plans.epoch} is in force",
            deadline_s,
        )

    def carry_out(
        self,
        kind: str,
        at_us: int,
        done: Callable[[], bool],
        what: str,
        *,
        moves: tuple[Move, ...] | None = None,
        apart: tuple[int, ...] = (),
    ) -> None:
        """Wait until a step that began at `at_us` is `done`, and for the end of its window; keep it.

        Raises OverdueError, the step kept all the same. moves: see Step.
        """
        overdue = None
        try:
            self.wait_for(done, f"{kind}: {what}", self.setup.step_deadline_s)
        except OverdueError as late:
            overdue = late
        self.pump(TAIL_US / 1e6)
        self.steps.append(Step(kind, at_us, now_us(), moves, apart))
        if overdue:
            raise overdue

    def evidence(self, sent: Sent) -> Evidence:
        """Return what was seen."""
        return Evidence(
            sent_us=np.array([*sent.acknowledged_us, *self._slow_us], dtype=np.int64),
            served=Served.of(self.timeline.rows),
            steps=tuple(self.steps),
            quiet=tuple(self.quiet),
            committed=self._commits.samples(),
            owned=self.setup.owned,
        )


def conduct(
    setup: Setup,
    connection: Connection,
    announce: Announce,
    act: Callable[[Experiment], None],
    start: Start | None = None,
) -> tuple[Experiment, Evidence, Outcome]:
    """Let `act` act on a group, then wait for the last events; return the notes, what was seen, and if it counts.

    connection: to topics that nobody else uses. start: what starts replicas; None: they are processes. Ctrl-C and a
    step that is overdue end the acting; what was measured until then stays. No process and no file is left behind.
    Raises BenchError.
    """
    problem, interrupted = "", False
    announce("starting", 0)
    with ExitStack() as stack:
        one = Experiment(setup, connection, stack, start)
        one.asked_to_stop = stack.enter_context(signals_noted())  # none may come within a start or a fetch
        one.begin()
        try:
            act(one)
        except OverdueError as overdue:
            problem = str(overdue)
        except KeyboardInterrupt:
            interrupted = True
        sent = one.end(QUICK_DRAIN_DEADLINE_S if interrupted or setup.quick else DRAIN_DEADLINE_S)
        evidence = one.evidence(sent)
    return one, evidence, verdict(setup, sent, problem=problem, interrupted=interrupted)


def settings_of(setup: Setup) -> dict[str, str]:
    """Return the settings of a replica, as environment."""
    named = {
        "DELIVERY" if setup.takes_plan else "RUNTIME": setup.runtime,
        "SERVICE_TIME_S": SERVICE_TIME_S,
        "SLOW_EVENT_S": 1,
        "HEARTBEAT_S": setup.heartbeat_s,
        "SESSION_S": max(SESSION_S, 2 * setup.heartbeat_s),
    }
    if setup.takes_plan:
        named["GUARANTEE"] = setup.guarantee
    return {f"TAILPACK_{name}": str(value) for name, value in named.items()}


def verdict(setup: Setup, sent: Sent, *, problem: str, interrupted: bool) -> Outcome:
    """Return whether an experiment counts. problem: the step that did not come to its end; empty for none."""
    late_s = sent.lateness_p99_us / 1e6
    if not problem and late_s > LATENESS_LIMIT_S:
        problem = f"the load was late: p99 {late_s:.3f} s, above {LATENESS_LIMIT_S} s; keep the machine quiet"
    return Outcome(
        **{name: getattr(setup, name) for name in Question.__struct_fields__},
        lateness_p99_s=late_s,
        lateness_max_s=sent.lateness_max_us / 1e6,
        valid=not problem,
        problem=problem,
        interrupted=interrupted,
        wall_s=round(time.monotonic() - setup.began_s, 2),
    )
