"""The base of the benchmarks that change a serving group: their options, and the figures of one case."""

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar, Final

from typer import Option

from bench.benchmark import QuickBenchmark, Row, Tools
from bench.handover.consumers import KNOWN, Consumers
from bench.handover.evidence import Evidence
from bench.handover.group import ServedGroup
from contracts.settings import duration_s
from contracts.waiting import WaitTimeoutError

QUICK_STEPS_S: Final = 33.0
"""With `quick`, the last step begins at this time at the latest, so that the benchmark ends within 50 s."""


@dataclass(kw_only=True)
class GroupBenchmark(QuickBenchmark):
    """Base class of benchmarks that change a serving group. It has the options of the group and its load."""

    CONSUMERS: ClassVar[tuple[str, ...]] = tuple(KNOWN)
    runtime: Annotated[str, Option(help=f"Consumers, separated by commas: {', '.join(KNOWN)}.")] = "ours"
    heartbeat: Annotated[str, Option(help="Heartbeat intervals of the members, separated by commas.")] = "3s"
    replicas: Annotated[int, Option(help="Number of replicas, each a process.", min=2, max=64)] = 3
    partitions: Annotated[int, Option(help="Partitions of the topic.", min=1, max=2000)] = 6
    rate: Annotated[
        int, Option(help="Events/s over all partitions; each event takes 5 ms to serve.", min=1, max=5000)
    ] = 150
    seed: Annotated[int, Option(help="Seed that chooses the steps.")] = 1

    def cases(self) -> Sequence[str]:
        """Return the consumers, each with every heartbeat interval. Raises ValueError for an unknown name."""
        for name in (names := self.runtime.split(",")):
            if name not in self.CONSUMERS:
                raise ValueError(f"--runtime {name}: this benchmark supports {', '.join(self.CONSUMERS)}")
        intervals = [text + "s" * text[-1:].isdigit() for text in self.heartbeat.split(",")]  # 3 is 3s
        return [f"{name} {duration_s(text):g}" for text in intervals for name in names]

    def is_late(self, group: ServedGroup) -> bool:
        """Return whether it is too late for a further step with `quick`."""
        return self.quick and time.monotonic() > group.began_s + QUICK_STEPS_S

    @abstractmethod
    def act(self, group: ServedGroup, announce: Callable[..., None]) -> None:
        """Take the steps of the benchmark. Raises WaitTimeoutError."""

    @staticmethod
    @abstractmethod
    def analyse(evidence: Evidence) -> Row:
        """Return the figures of the evidence."""

    def measure(self, case: str, tools: Tools) -> Row:
        """Run `act` on a group; return the figures and whether they are valid.

        Ctrl-C, or a step that takes too long, ends `act`. The figures then cover the steps until that moment.
        """
        problem, interrupted = "", False
        name, _, heartbeat_s = case.partition(" ")
        consumers = Consumers(*KNOWN[name], float(heartbeat_s))
        is_planned = consumers.by == "assigned"
        with tools.kafka("group", self.partitions, is_planned=is_planned) as connection, ExitStack() as stack:
            group = ServedGroup(self, consumers, connection, stack)
            group.begin()
            try:
                self.act(group, tools.announce)
            except WaitTimeoutError as error:
                problem = str(error)
            except KeyboardInterrupt:
                interrupted = True
            evidence, sent = group.finish()
        late_s, limit_s = (sent.lateness_p99_us or 0) / 1e6, sent.lateness_limit_us / 1e6
        if not problem and late_s > limit_s:
            problem = f"the load was late: p99 {late_s:.3f} s, limit {limit_s} s; stop other programs and repeat"
        verdict = {"valid": not problem, "problem": problem, "interrupted": interrupted}
        times = {"lateness_p99_s": late_s, "wall_s": round(time.monotonic() - group.began_s, 2)}
        return (
            asdict(self) | {"runtime": name, "heartbeat": float(heartbeat_s)} | self.analyse(evidence) | times | verdict
        )
