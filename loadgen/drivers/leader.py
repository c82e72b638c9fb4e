"""The master of a shared load: it tells each worker its share, compares clocks, and puts together what became of it."""

import time
from pathlib import Path
from typing import Any, Final

import gevent
import msgspec
from gevent.event import Event
from gevent.queue import Empty, Queue
from locust import runners
from locust.runners import MasterRunner

from contracts.clock import now_us
from contracts.connection import Connection
from loadgen.drivers.distributed import CLOCK, DONE, READY, SHARE, START, STOP, Ready, Share, digest, versions
from loadgen.drivers.job import await_start
from loadgen.drivers.sender import GeneratorError
from loadgen.faults import LATEST_US
from loadgen.orders import send_numbers
from loadgen.result import READY_FILE, GeneratorResult, Part
from loadgen.spec import DriverSettings, LoadSpec

LOOK_S: Final = 0.2
"""Between two looks who is still there."""
STOPPED_S: Final = 10.0
"""How long the results of workers are awaited that were told to stop."""
REPORT_S: Final = 5.0
"""Beyond the drain, how long a worker may take to say what it did; and to answer when it is asked for its clock."""
SILENT_S: Final = 15
"""So long a worker's heartbeat may be missing. One that catches up with a flood, or waits for a processor, is silent
for seconds."""
CLOCK_LOOKS: Final = 5
"""Of so many answers the quickest says most of a clock."""
CLOCKS_APART_US: Final = 2_000
"""Intended times of one load must not differ by more from process to process."""


class Leader:
    """The master: it shares the load out, says when it begins, and gathers the results."""

    def __init__(
        self, runner: MasterRunner, spec: LoadSpec, connection: Connection, settings: DriverSettings, stopped: Event
    ) -> None:
        runners.HEARTBEAT_LIVENESS = SILENT_S // runners.HEARTBEAT_INTERVAL
        self._runner = runner
        self._spec = spec
        self._connection = connection
        self._settings = settings
        self._stopped = stopped
        self._schedule = spec.schedule()
        self._inbox: Queue = Queue()
        self._workers: list[str] = []
        self._clock_offset_us = 0
        for kind in (READY, CLOCK, DONE):
            runner.register_message(
                kind, lambda environment, msg, **_: self._inbox.put((msg.type, msg.node_id, msg.data))
            )

    def lead(self, *, spawn: bool) -> GeneratorResult:
        """Run the load. spawn: start Locust's users, too, where Locust does not do so itself."""
        parts: dict[str, Part] = {}
        started_us, error = None, None
        try:
            self._gather()
            self._share_out()
            self._compare_clocks()
            (Path(self._settings.out_dir) / READY_FILE).touch()
            started_us = await_start(self._settings, self._wait)
            if spawn:
                self._runner.start(len(self._workers), spawn_rate=len(self._workers))
            self._tell(START, started_us)
            self._collect(parts, started_us)
        except GeneratorError as wrong:
            error = str(wrong)
        if self._stopped.is_set() or error:
            self._tell(STOP, None)
            self._collect_the_rest(parts)
        return GeneratorResult.of(
            list(parts.values()),
            scheduled=len(send_numbers(self._spec, self._schedule)),
            events=len(self._schedule),
            latency_target_s=self._spec.latency_target_s,
            started_us=started_us,
            error=error,
            interrupted=self._stopped.is_set(),
            workers=len(self._workers),
            clock_offset_us=self._clock_offset_us,
        )

    def _gather(self) -> None:
        """Wait for the workers."""
        wanted, deadline = self._settings.workers, time.monotonic() + self._settings.connect_deadline_s
        while len(found := [one.id for one in self._runner.clients.ready]) < wanted:
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"{len(found)} of {wanted} load workers came to {self._settings.listen} within "
                    f"{self._settings.connect_deadline_s:g} s: start the others with TAILPACK_MASTER at that address"
                )
            self._wait(LOOK_S)
        self._workers = sorted(found)[:wanted]

    def _share_out(self) -> None:
        """Tell each worker its share, and wait until all can begin."""
        for index, worker in enumerate(self._workers):
            share = Share(load=self._spec, namespace=self._connection.namespace, index=index, of=len(self._workers))
            self._runner.send_message(SHARE, msgspec.json.encode(share), worker)
        waiting, deadline = set(self._workers), time.monotonic() + 2 * self._settings.connect_deadline_s
        while waiting:
            if time.monotonic() > deadline:
                raise GeneratorError(f"load worker {self._name(min(waiting))} is not ready: see what it says itself")
            for worker, data in self._heard(READY, waiting):
                said = msgspec.msgpack.decode(data, type=Ready)
                if said.problem:
                    raise GeneratorError(f"load worker {self._name(worker)}: {said.problem}")
                if (said.made_by, said.schedule) != (versions(), digest(self._schedule)):
                    raise GeneratorError(
                        f"load worker {self._name(worker)} has {said.made_by} and would send another schedule "
                        f"than this master, which has {versions()}: install the same everywhere"
                    )
                waiting.discard(worker)

    def _compare_clocks(self) -> None:
        """Ask each worker for its time. Raises GeneratorError for a clock that is certainly apart from ours."""
        for worker in self._workers:
            offset_us, doubt_us = min((self._clock_of(worker) for _ in range(CLOCK_LOOKS)), key=lambda found: found[1])
            if abs(offset_us) > CLOCKS_APART_US + doubt_us:
                raise GeneratorError(
                    f"load worker {self._name(worker)}: its clock is {abs(offset_us) / 1000:,.1f} ms "
                    f"{'ahead of' if offset_us > 0 else 'behind'} this master's, at most {CLOCKS_APART_US // 1000} ms "
                    "are allowed: let both follow one time server"
                )
            self._clock_offset_us = max(self._clock_offset_us, offset_us, key=abs)

    def _clock_of(self, worker: str) -> tuple[int, int]:
        """Return by how much a worker's clock is ahead of ours, and how far that may be wrong; µs."""
        asked_us, deadline = now_us(), time.monotonic() + REPORT_S
        self._runner.send_message(CLOCK, None, worker)
        while time.monotonic() < deadline:
            for _, data in self._heard(CLOCK, {worker}):
                doubt_us = (now_us() - asked_us) // 2
                return msgspec.msgpack.decode(data, type=int) - asked_us - doubt_us, doubt_us
        raise GeneratorError(f"load worker {self._name(worker)} does not answer: see what it says itself")

    def _collect(self, parts: dict[str, Part], started_us: int) -> None:
        """Wait until all are done, or until this is to stop.

        Raises GeneratorError where, after the last event was due, nobody has sent anything for so long that a drain is
        over: a worker that hangs is alive by its heartbeat.
        """
        patience_us = round((self._settings.drain_deadline_s + REPORT_S) * 1e6)
        last_us, before = started_us + int(self._schedule.offset_us.max(initial=0)) + LATEST_US, -1
        while waiting := set(self._workers) - set(parts):
            if self._stopped.is_set():
                return
            if (settled := self._runner.stats.total.num_requests) != before:
                before, last_us = settled, max(last_us, now_us())
            if now_us() > last_us + patience_us:
                raise GeneratorError(
                    f"load worker {self._name(min(waiting))} has said nothing of its share for "
                    f"{patience_us / 1e6:g} s after the last event: the run is invalid; see what it says itself"
                )
            for worker, data in self._heard(DONE, waiting):
                parts[worker] = msgspec.msgpack.decode(data, type=Part)

    def _collect_the_rest(self, parts: dict[str, Part]) -> None:
        deadline = time.monotonic() + STOPPED_S
        while (waiting := set(self._workers) - set(parts) - self._dead()) and time.monotonic() < deadline:
            for worker, data in self._heard(DONE, waiting, whole=False):
                parts[worker] = msgspec.msgpack.decode(data, type=Part)

    def _heard(self, kind: str, waiting: set[str], *, whole: bool = True) -> list[tuple[str, bytes]]:
        """Return what workers said of that kind; what else they said is of before, and dropped.

        Raises GeneratorError for one that is gone; not whole: it does not matter now.
        """
        try:
            found = [self._inbox.get(timeout=LOOK_S)]
        except Empty:
            found = []
        while not self._inbox.empty():
            found.append(self._inbox.get())
        told = [(worker, data) for of, worker, data in found if of == kind and worker in waiting]
        if whole and (gone := waiting & self._dead() - {worker for worker, _ in told}):
            raise GeneratorError(
                f"load worker {self._name(min(gone))} has died: a share of the events is missing, and the run invalid"
            )
        return told

    def _dead(self) -> set[str]:
        alive = {one.id for one in self._runner.clients.all if one.state != "missing"}
        return set(self._workers) - alive

    def _tell(self, kind: str, what: Any) -> None:
        for worker in self._workers:
            self._runner.send_message(kind, what, worker)

    def _name(self, worker: str) -> str:
        return f"{self._workers.index(worker) + 1} of {len(self._workers)} ({worker})"

    def _wait(self, pause_s: float) -> None:
        gevent.sleep(pause_s)
        if self._stopped.is_set():
            raise GeneratorError("stopped before the load began")
