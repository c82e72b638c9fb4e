"""Measure how the autoscaler and its group scale with the number of members and partitions on one broker."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Annotated, Final

import psutil
from typer import Option

from autoscaler.live.composition import LiveAutoscaler
from autoscaler.live.configuration import StartupConfig
from autoscaler.live.hold_reader import HoldReader
from autoscaler.live.launchers.processes import ProcessLauncher, ReplicaProcess
from autoscaler.live.metrics import JOURNAL_BYTES, PLAN_ADOPTION, TICK
from autoscaler.live.plan_log import PlanLog
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.settings import REPLICA_PREFIX
from bench import BenchError
from bench.benchmark import QuickBenchmark, Row, Tools, environ_of
from contracts.children import defer_stop_signals, python_module
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.metrics import MetricSpec
from contracts.waiting import Stop, WaitTimeoutError, until

PLANS, QUICK_PLANS = 5, 2
REST_S, QUICK_REST_S = 20.0, 6.0
BROKER_S, START_S, STOP_S, PLAN_S = 120.0, 60.0, 20.0, 60.0
MAX_STARTING: Final = 4
"""Maximum number of members that start at the same time. Each needs a core for some tenths of a second."""
DAY_S: Final = 86_400.0


@dataclass(kw_only=True)
class Scale(QuickBenchmark):
    """Measure tick time, plan adoption and journal size of the controller with many members and partitions."""

    sizes: Annotated[str, Option(help="Sizes to measure: MEMBERSxPARTITIONS, separated by commas.")] = "10x100,50x1000"

    def cases(self) -> Sequence[str]:
        """Return the sizes. Raises ValueError if one is invalid."""
        return ["{}x{}".format(*_size(size)) for size in self.sizes.split(",")[: 1 if self.quick else None]]

    def measure(self, case: str, tools: Tools) -> Row:
        """Start the members, move a quarter of the partitions several times, then measure without changes."""
        members, partitions = _size(case)
        row: Row = {"members": members, "partitions": partitions, "problem": ""}
        os.environ.setdefault("KAFKA_HEAP_OPTS", f"-Xmx{384 + partitions // 8}m")  # a broker needs 0.1 MB for each
        with tools.kafka("scale", partitions) as connection, ExitStack() as stack:
            group = _Group(connection, members, partitions, stack)
            try:
                tools.announce(status="starting members")
                group.start_members(connection, members)
                tools.announce(status="writing the first plan")
                row["first_plan_s"] = group.start_controller(stack)
                tools.announce(status="moving partitions")
                plans_s = [group.move() for _ in range(QUICK_PLANS if self.quick else PLANS)]
                row |= {"plan_taken_s": median(plans_s), "plan_taken_max_s": max(plans_s)}
                tools.announce(status="measuring without changes")
                row |= group.rest(QUICK_REST_S if self.quick else REST_S)
            except (WaitTimeoutError, BenchError) as error:
                row["problem"] = str(error)
        return row


class _Group:
    """A group of members, and an autoscaler that adopts them. The members are killed at the end."""

    def __init__(self, connection: Connection, members: int, partitions: int, stack: ExitStack) -> None:
        folder = stack.enter_context(TemporaryDirectory())
        settings = AutoscalerSettings(
            policy="static", payment_partitions=partitions, state_dir=folder,
            initial_replicas=members, max_replicas=members,
        )  # fmt: skip
        self._launcher = ProcessLauncher(Path(folder), python_module("services.payment"), environ_of(connection))
        self._members, self._mover, self._stop = dict[str, ReplicaProcess](), _Mover(), Stop()
        PlanLog(connection, settings, deadline_s=BROKER_S)  # the broker first creates thousands of logs
        config = StartupConfig(settings, connection, self._mover, {})
        holds = stack.enter_context(closing(HoldReader(connection, settings, configured=settings.act)))
        self._autoscaler = LiveAutoscaler(config, self._launcher, self._stop, holds, stack, warn=lambda _: None)
        stack.callback(self._autoscaler.close)
        stack.callback(self._end_members)

    def start_members(self, connection: Connection, count: int) -> None:
        """Start `count` members, a few at a time, and wait until each has reported."""
        with closing(ProgressReader(connection)) as reports:
            for name in [f"{REPLICA_PREFIX}-{number}" for number in range(count)]:
                with defer_stop_signals():
                    self._members[name] = self._launcher.start(name)
                self._until(lambda: len(self._members) - len(reports.poll()) < MAX_STARTING, START_S, "members start")
            self._until(lambda: len(reports.poll()) == count, START_S, "all members start")

    def _end_members(self) -> None:
        for member in self._members.values():
            member.kill()
        until(lambda: all(member.exit() for member in self._members.values()), STOP_S, "members end")

    def start_controller(self, stack: ExitStack) -> float:
        """Start the autoscaler; return the time until the first plan was adopted, in s. `stack` stops it at its end."""
        began_s, controller = monotonic_s(), Thread(target=self._autoscaler.run, name="controller")
        controller.start()
        stack.callback(controller.join)
        stack.callback(self._stop.set)
        self._until(lambda: self._value(PLAN_ADOPTION, "_count") > 0, PLAN_S, "the first plan is adopted")
        return monotonic_s() - began_s

    def move(self) -> float:
        """Move a quarter of the partitions; return the time until every member had adopted the plan, in s."""
        count, total_s = self._value(PLAN_ADOPTION, "_count"), self._value(PLAN_ADOPTION, "_sum")
        self._mover.move_requested = True
        self._until(lambda: self._value(PLAN_ADOPTION, "_count") > count, PLAN_S, "a plan is adopted")
        return self._value(PLAN_ADOPTION, "_sum") - total_s

    def rest(self, rest_s: float) -> Row:
        """Change nothing for `rest_s`; return the resources that were used in this time."""
        before, began_s = self._counters(), monotonic_s()
        self._until(lambda: monotonic_s() - began_s >= rest_s, 2 * rest_s, "rest")
        spent_s = monotonic_s() - began_s
        used = {name: value - before[name] for name, value in self._counters().items()}
        return {
            "tick_s": used.pop("ticks_s") / used.pop("ticks"),
            "journal_mb_per_day": used.pop("journal_bytes") / spent_s * DAY_S / 1e6,
            **{name: value / spent_s for name, value in used.items()},
        }

    def _until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        def done() -> bool:
            for name, member in self._members.items():
                if found := member.exit():
                    raise BenchError(f"{name} ended: {found.description}: {self._launcher.last_log_line(name)}")
            return condition()

        until(done, within_s, what)

    def _counters(self) -> dict[str, float]:
        broker = next(child for child in psutil.Process().children() if "java" in child.name())
        members = (psutil.Process(member.pid).cpu_times()[:2] for member in self._members.values())
        return {
            "ticks": self._value(TICK, "_count"),
            "ticks_s": self._value(TICK, "_sum"),
            "broker_cores": sum(broker.cpu_times()[:2]),
            "controller_cores": time.process_time(),
            "members_cores": float(sum(map(sum, members))),
            "journal_bytes": self._value(JOURNAL_BYTES),
        }

    def _value(self, metric: MetricSpec, part: str = "") -> float:
        return self._autoscaler._metrics.registry.get_sample_value(f"{metric.name}{part}") or 0.0


class _Mover:
    """A policy that moves a quarter of the partitions on request, and otherwise changes nothing."""

    name = "mover"
    move_requested = False

    def decide(self, observation: GroupObservation) -> Decision:
        names = observation.replica_names
        if not self.move_requested or len(names) < 2:
            return Decision(Action.NO_CHANGE, Plan(names, observation.assignment), "no move was requested")
        self.move_requested = False
        successor = dict(zip(names, (*names[1:], names[0]), strict=True))
        owners = {at: successor[owner] if at % 4 == 0 else owner for at, owner in observation.assignment.items()}
        return Decision(Action.REASSIGN, Plan(names, owners), "a quarter moves")


def _size(text: str) -> tuple[int, int]:
    members, cross, partitions = text.strip().partition("x")
    if not (cross and members.isdigit() and partitions.isdigit() and 0 < int(members) <= int(partitions)):
        raise ValueError(f"--sizes {text!r}: must be MEMBERSxPARTITIONS, as 50x1000; each member needs a partition")
    return int(members), int(partitions)
