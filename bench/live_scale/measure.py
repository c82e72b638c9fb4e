"""One size: members start, take plans that move a quarter of the partitions, and rest; what that costs whom."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from threading import Event, Thread
from typing import Final

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.settings import REPLICA_PREFIX
from bench import BenchError
from bench.live_scale.controller import Mover, Timed, middle
from bench.results import LiveScaleRow
from contracts.children import python_module, signals_noted, start
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.topics import Topic, qualified
from contracts.validation import as_environment

MEMBERS_IN_A_PROCESS: Final = 100
DAY_S: Final = 86_400.0
STEP_S: Final = 0.05
PLANS: Final = 5
REST_S: Final = 20.0
QUICK_PLANS: Final = 2
QUICK_REST_S: Final = 6.0
OPEN_S: Final = 10.0
OPEN_EACH_S: Final = 0.02
OPEN_LOOK_S: Final = 0.5
ENDS: Final = -1
"""In place of a timestamp: the end of the partition."""
START_S: Final = 60.0
START_EACH_S: Final = 0.05
START_EACH_PARTITION_S: Final = 6e-5
"""From the start of a member to that of the next in its process. It learns who leads what: 0.25 s for ten thousand."""
PLAN_DEADLINE_S: Final = 60.0

Announce = Callable[[str], None]


def measure(
    connection: Connection, broker_pid: int, *, members: int, partitions: int, quick: bool, announce: Announce
) -> LiveScaleRow | None:
    """Measure one size on topics that nobody else uses; None after Ctrl-C. No process is left behind."""
    mover, stop, pids, said = Mover(), Event(), dict[str, int](), list[str]()
    with signals_noted() as asked, tempfile.TemporaryDirectory() as folder:
        settings = AutoscalerSettings(
            policy="static",
            payment_partitions=partitions,
            state_dir=folder,
            initial_replicas=members,
            max_replicas=members,
        )
        announce("the broker opens its partitions")
        try:
            _wait_for_leaders(connection, partitions, asked)
        except KeyboardInterrupt:
            return None
        timed = Timed(settings, connection, mover, pids, stop=stop, warn=said.append)  # while the broker has no members
        each_s = START_EACH_S + START_EACH_PARTITION_S * partitions
        with _members(connection, members, Path(folder), each_s) as hosts:
            pids |= {f"{REPLICA_PREFIX}-{k}": hosts[k // MEMBERS_IN_A_PROCESS].pid for k in range(members)}
            course = _Course(timed, mover, broker_pid, hosts=hosts, folder=Path(folder), asked=asked)
            controller = Thread(target=timed.run, name="controller")
            try:
                course.start(members, START_S + 2 * each_s * min(members, MEMBERS_IN_A_PROCESS), announce)
                controller.start()
                course.run(quick, announce)
            except BenchError as overdue:
                course.problem = "; ".join([str(overdue), *said[-1:]])
            except KeyboardInterrupt:
                return None
            finally:
                stop.set()
                if controller.ident is not None:
                    controller.join()
                timed.close()
        return course.row(members, partitions, len(hosts))


def _wait_for_leaders(connection: Connection, partitions: int, asked: list[int]) -> None:
    """Wait until the broker answers for every partition: of ten thousand new ones it opens a few hundred a second.

    Until a deadline: members wait for the rest. Raises KeyboardInterrupt after a signal.
    """
    topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
    places = [TopicPartition(qualified(connection.namespace, Topic.PROGRESS), 0, ENDS)]
    places += [TopicPartition(topic, number, ENDS) for number in range(partitions)]
    until_s = steady_s() + OPEN_S + OPEN_EACH_S * partitions
    while not _all_answer(connection, places) and steady_s() < until_s:
        if asked:
            raise KeyboardInterrupt
        time.sleep(OPEN_LOOK_S)  # no broker tells when its partitions are open


def _all_answer(connection: Connection, places: list[TopicPartition]) -> bool:
    """Return whether there is an end of each. A client of its own each time: none keeps what it was told too early."""
    consumer = Consumer(connection.librdkafka() | {"group.id": "unused", "log_level": "0"})
    try:
        return all(one.error is None for one in consumer.offsets_for_times(places, timeout=OPEN_S))
    except KafkaException:
        return False
    finally:
        consumer.close()


class _Course:
    """What is done and measured, in its order."""

    def __init__(
        self,
        timed: Timed,
        mover: Mover,
        broker_pid: int,
        *,
        hosts: list["Popen[bytes]"],
        folder: Path,
        asked: list[int],
    ) -> None:
        self._timed, self._mover, self._folder, self._asked = timed, mover, folder, asked
        self._hosts = hosts
        self._broker = psutil.Process(broker_pid)
        self._members = [psutil.Process(host.pid) for host in hosts]
        self.problem = ""
        self._first_s: float | None = None
        self._plans_s: list[float] = []
        self._moving_ticks_s: list[float] = []
        self._rest: dict[str, float] = {}
        self._rest_ticks_s: list[float] = []
        self._rest_journal: list[float] = []

    def start(self, members: int, deadline_s: float, announce: Announce) -> None:
        """Wait until all serve. Raises BenchError and KeyboardInterrupt."""
        announce("members start")
        self._until(lambda: self._counted()[1] == members, "members start", deadline_s)

    def run(self, quick: bool, announce: Announce) -> None:
        """Plan, move, rest. Raises BenchError and KeyboardInterrupt."""
        began_s = steady_s()
        announce("first plan")
        self._until(lambda: self._timed.taken()[0] > 0 and self._mover.observed > 0, "the first plan", PLAN_DEADLINE_S)
        self._first_s = steady_s() - began_s
        before = len(self._timed.ticks_s)
        for number in range(QUICK_PLANS if quick else PLANS):
            announce(f"plan {number + 2}")
            count, total_s = self._timed.taken()
            self._mover.asked = True
            self._until(lambda count=count: self._timed.taken()[0] > count, f"plan {number + 2}", PLAN_DEADLINE_S)  # type: ignore[misc]
            self._plans_s.append(self._timed.taken()[1] - total_s)
        self._moving_ticks_s = self._timed.ticks_s[before:]
        announce("rest")
        begin, since_s, before = self._counters(), steady_s(), len(self._timed.ticks_s)
        rest_s = QUICK_REST_S if quick else REST_S
        self._until(lambda: steady_s() - since_s >= rest_s, "rest", 2 * rest_s)
        lasted_s = steady_s() - since_s
        self._rest = {name: (value - begin[name]) / lasted_s for name, value in self._counters().items()}
        self._rest_ticks_s = self._timed.ticks_s[before:]
        self._rest_journal = self._timed.ticks_bytes[before:]

    def row(self, members: int, partitions: int, processes: int) -> LiveScaleRow:
        """Return what was found."""
        rest, journal = self._rest.get, middle(self._rest_journal)
        return LiveScaleRow(
            members=members,
            partitions=partitions,
            processes=processes,
            first_plan_s=self._first_s,
            plan_taken_s=middle(self._plans_s),
            plan_taken_max_s=max(self._plans_s, default=None),
            tick_s=middle(self._rest_ticks_s),
            tick_max_s=max((*self._moving_ticks_s, *self._rest_ticks_s), default=None),
            requests_per_s=rest("requests"),
            broker_cores=rest("broker"),
            controller_cores=rest("controller"),
            members_cores=rest("members"),
            journal_mb_per_day=None if journal is None else 2 * journal * DAY_S / 1e6,
            problem=self.problem,
        )

    def _until(self, condition: Callable[[], bool], what: str, deadline_s: float) -> None:
        give_up_s = steady_s() + deadline_s
        while not condition():
            if self._asked:
                raise KeyboardInterrupt
            for number, host in enumerate(self._hosts):
                if host.poll() is not None:
                    said = self._last_words(number * MEMBERS_IN_A_PROCESS)
                    raise BenchError(f"{what}: members ended with status {host.returncode}: {said}")
            if steady_s() > give_up_s:
                raise BenchError(f"not within {deadline_s:.0f} s: {what}")
            time.sleep(STEP_S)  # members tell by files and reports

    def _last_words(self, first: int) -> str:
        """Return the last error that the process of member `first` wrote before it ended."""
        said = (self._folder / f"members-{first}.log").read_text(encoding="utf-8")
        errors = re.findall(r"^\S+Error: .+", said, re.MULTILINE)
        return errors[-1] if errors else "without a word"

    def _counted(self) -> tuple[int, int]:
        """Return how many requests the members have sent, and how many of them serve."""
        told = [file.read_text(encoding="ascii").split() for file in self._folder.glob("requests-*")]
        return sum(int(requests) for requests, _ in told), sum(int(serving) for _, serving in told)

    def _counters(self) -> dict[str, float]:
        return {
            "requests": float(self._counted()[0]),
            "broker": sum(self._broker.cpu_times()[:2]),
            "controller": time.process_time(),
            "members": float(sum(sum(one.cpu_times()[:2]) for one in self._members)),
        }


@contextmanager
def _members(connection: Connection, members: int, folder: Path, each_s: float) -> Iterator[list["Popen[bytes]"]]:
    """Yield the processes that hold the members; they own nothing worth keeping, so they are killed at the end."""
    hosts: list[Popen[bytes]] = []
    try:
        for first in range(0, members, MEMBERS_IN_A_PROCESS):
            settings = {
                "REPLICA": REPLICA_PREFIX,
                "FIRST": first,
                "COUNT": min(MEMBERS_IN_A_PROCESS, members - first),
                "EACH_S": each_s,
                "COUNTED": folder / f"requests-{first}",
            }
            own = {f"TAILPACK_{name}": str(value) for name, value in settings.items()}
            environ = {**os.environ, **as_environment(connection), **own}
            hosts.append(start(python_module("services.light"), environ, folder / f"members-{first}.log"))
        yield hosts
    finally:
        for host in hosts:
            host.kill()
        for host in hosts:
            host.wait()
