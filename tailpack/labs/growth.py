"""`tailpack bench growth`: a topic grows a few partitions at a time under load, then one replica takes all of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from bench.handover.outcome import Faults, GrowthResult
from bench.handover.stretch import stretch
from contracts.topics import Topic, qualified
from tailpack.errors import TailpackError
from tailpack.labs.clients import client
from tailpack.labs.columns import rank_s
from tailpack.labs.lab import Lab, OverdueError, Setup, now_us
from tailpack.labs.outcome import outcome

LATENCY_TARGET_S: Final = 0.5
SETTLE_S: Final = 3.0
QUIET_S: Final = 20.0
STABLE_DEADLINE_S: Final = 120.0
ADMIN_DEADLINE_S: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class Course:
    """From `setup.partitions` to `partitions`, `step` at a time."""

    setup: Setup
    partitions: int
    step: int
    began_s: float

    @property
    def sizes(self) -> range:
        """The number of partitions after each growth."""
        first = self.setup.partitions + self.step
        return range(first, max(self.partitions + 1, first + 1), self.step)


@dataclass(slots=True)
class _Seen:
    """What was measured so far. Times µs since the epoch."""

    startup_s: float = 0.0
    quiet: tuple[int, int] = (0, 0)
    growing: tuple[int, int] = (0, 0)
    stable_s: list[float] = field(default_factory=list)
    rounds: int = 0
    shrink_s: float | None = None
    shrink_rounds: int = 0


def run(course: Course, announce: Callable[[str, int], None]) -> GrowthResult:
    """Carry it out. announce: hears of the phase or the figures so far, and of the partitions. Raises TailpackError."""
    seen, problem, interrupted = _Seen(), "", False
    announce("starting", 0)
    with Lab(course.setup) as lab:
        try:
            seen.startup_s = lab.start_group()
            lab.start_load()
            lab.pump(until_s=time.monotonic() + SETTLE_S)
            announce("quiet stretch before the growth", course.setup.partitions)
            seen.quiet = lab.rest(QUIET_S)
            _grow(lab, course, seen, announce)
            announce("one replica takes all", course.partitions)
            _shrink(lab, seen)
        except OverdueError as overdue:
            problem = str(overdue)
        except KeyboardInterrupt:
            interrupted = True
        sent = lab.stop_load()
        evidence = lab.evidence([], [], sent)
    first = evidence.served.first_completions()
    quiet, growing = (stretch(first, *one, latency_target_s=LATENCY_TARGET_S) for one in (seen.quiet, seen.growing))
    common = outcome(course.setup, sent, problem=problem, interrupted=interrupted, quick=False, began_s=course.began_s)
    reached = course.setup.partitions + course.step * len(seen.stable_s)
    return GrowthResult(
        **msgspec.structs.asdict(common) | {"partitions": reached},
        partitions_before=course.setup.partitions,
        step=course.step,
        steps=len(seen.stable_s),
        startup_s=seen.startup_s,
        growth_s=growing.length_s,
        stable_p50_s=rank_s(seen.stable_s, 0.5),
        stable_max_s=rank_s(seen.stable_s, 1.0),
        stable_after_last_s=seen.stable_s[-1] if seen.stable_s else None,
        rounds=seen.rounds,
        shrink_s=seen.shrink_s,
        shrink_rounds=seen.shrink_rounds,
        quiet=quiet,
        growing=growing,
        throughput_share=growing.throughput / quiet.throughput if quiet.throughput else 0.0,
        faults=Faults.of(evidence),
    )


def _grow(lab: Lab, course: Course, seen: _Seen, announce: Callable[[str, int], None]) -> None:
    admin = AdminClient(client(lab.connection))
    began_us, generation = now_us(), lab.reports.generation()
    for size in course.sizes:
        begin_s = time.monotonic()
        _create_partitions(admin, qualified(lab.connection.namespace, Topic.PAYMENTS_REQUESTED), size)
        new = range(len(lab.plans.assignment), size)
        lab.plans.write(lab.plans.replicas, {**lab.plans.assignment, **lab.plans.spread(new, lab.plans.replicas)})
        lab.wait_for_plan(STABLE_DEADLINE_S)
        seen.stable_s.append(time.monotonic() - begin_s)
        seen.growing = (began_us, now_us())
        seen.rounds = lab.reports.generation() - generation
        announce(f"stable after {seen.stable_s[-1]:.2f} s, {seen.rounds} rounds", size)


def _shrink(lab: Lab, seen: _Seen) -> None:
    begin_s, generation = time.monotonic(), lab.reports.generation()
    only = lab.plans.replicas[0]
    lab.plans.write(lab.plans.replicas, dict.fromkeys(lab.plans.assignment, only))
    lab.wait_for_plan(STABLE_DEADLINE_S)
    seen.shrink_s = time.monotonic() - begin_s
    seen.shrink_rounds = lab.reports.generation() - generation


def _create_partitions(admin: AdminClient, topic: str, total: int) -> None:
    """Raises TailpackError when the broker refuses or does not answer."""
    (answer,) = admin.create_partitions([NewPartitions(topic, total)]).values()
    try:
        answer.result(ADMIN_DEADLINE_S)
    except (KafkaException, TimeoutError) as refused:
        raise TailpackError(f"{topic} could not grow to {total} partitions: {refused}") from refused
