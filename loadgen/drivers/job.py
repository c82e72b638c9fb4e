"""The part of a load that one process sends: connect, send, drain."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import gevent
import numpy as np
from gevent.event import Event
from gevent.monkey import get_original
from prometheus_client import CollectorRegistry

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.topics import qualified
from contracts.validation import InvalidSettingsError
from loadgen import orders
from loadgen.drivers.sender import GeneratorError, GeneratorMetrics, Pause, Sender, Settled
from loadgen.faults import DUPLICATE, POISON, affected_events, due_us
from loadgen.pacing import LONGEST_PAUSE_S, MAX_PREPARE_AHEAD_US, Pacer
from loadgen.result import GeneratorResult, lateness_limit_us, lateness_percentile_us
from loadgen.schedule import NO_KEY, SECOND_US, Schedule
from loadgen.spec import DriverSettings, LoadSpec, read_load

LEAD_US: Final = 1_000_000
"""Shortest time from ready to second 0 if there is no start file, µs."""
LOOP_S: Final = 0.002
"""Last part of each pause, in which the whole process sleeps, because the kernel wakes it within 0.1 ms."""
INTERRUPTED_DRAIN_S: Final = 3.0
"""Longest wait for acknowledgements after a signal or an error."""
LOOK_S: Final = 0.25
"""Time from one look at the load file to the next."""
_sleep: Final = get_original("time", "sleep")


def pause(pause_s: float) -> None:
    """Let other greenlets run for `pause_s` seconds, and return on time. In the last LOOP_S the process sleeps.

    gevent alone would return up to 1 ms late, because its event loop wakes only at whole milliseconds.
    """
    until_s = time.perf_counter() + pause_s
    gevent.sleep(max(pause_s - LOOP_S, 0))
    if (left_s := until_s - time.perf_counter()) > 0:
        _sleep(left_s)


class Job:
    """Sends one process's part of the load. `result` is available at any time."""

    def __init__(self, spec: LoadSpec, connection: Connection, settings: DriverSettings, *, settled: Settled) -> None:
        self._spec, self._settings = spec, settings
        self._columns: list[Any] = []
        """Each array has a value for each event: intended time (µs), partition, key, send time, unreadable, twice."""
        self._plan(0)
        self._orders = orders.Orders(connection.namespace, spec.seed)
        topic, self._partitions = orders.input_topic(spec)
        self._sender = Sender(
            connection, qualified(connection.namespace, topic), settings.linger_ms, pause=pause, settled=settled
        )
        self._pacer: Pacer | None = None
        self.started_us: int | None = None
        self._look_s = 0.0  # monotonic time at which the load file is read next
        self._changed_ns = 0

    def _plan(self, from_s: int) -> None:
        """Compute the events of the load. Those before second `from_s` stay as they are."""
        spec, new = self._spec, self._spec.schedule()
        faults = (affected_events(spec.faults, kind, new.offset_us, spec.seed) for kind in (POISON, DUPLICATE))
        keys = np.full(len(new), NO_KEY) if new.key is None else new.key
        due = due_us(spec.faults, new.offset_us, spec.seed)
        columns: list[Any] = [new.offset_us, new.partition, keys, due, *faults]
        if old := self._columns:
            kept, first = (int(np.searchsorted(one[0], from_s * SECOND_US)) for one in (old, columns))
            columns = [np.concatenate([a[:kept], b[first:]]) for a, b in zip(old, columns, strict=True)]
        self._columns = columns
        self.schedule, (self._due_us, self._poison, is_duplicate) = Schedule(*columns[:3]), columns[3:]
        numbers = orders.send_numbers(self._due_us, is_duplicate)
        repeated = np.diff(numbers, prepend=-1) == 0
        own = slice(self._settings.part - 1, None, self._settings.parts)
        self._numbers, self._repeated = numbers[own], int(repeated[own].sum())

    def _events(self, first: int) -> Iterator[orders.Event]:
        """Yield the events of this part from a place in its send order on."""
        numbers, started_us = self._numbers[first:], self.started_us or 0
        return orders.events(self._spec, self.schedule, self._orders, started_us, numbers=numbers, poison=self._poison)

    def _read_change(self, pacer: Pacer) -> None:
        """Read the load file if it was written again. Events that are prepared stay."""
        self._look_s = time.monotonic() + LOOK_S
        with suppress(OSError, InvalidSettingsError):  # the load that was started goes on
            changed_ns = Path(self._settings.load_file).stat().st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            self._changed_ns = changed_ns
            if (spec := read_load(self._settings)) != self._spec:
                prepared_us = now_us() - (self.started_us or 0) + MAX_PREPARE_AHEAD_US
                self._spec = spec
                self._plan(max(spec.changed_s, prepared_us // SECOND_US + 1))
                pacer.replace(self._due_us[self._numbers], self._events)

    def metrics(self) -> CollectorRegistry:
        """Return Prometheus metrics of the progress and lateness of this part."""
        registry = CollectorRegistry()
        limit_us = lateness_limit_us(self._spec.latency_target_s)
        registry.register(GeneratorMetrics(self._sender, lambda: self._pacer, limit_us))
        return registry

    def connect(self, deadline_s: float) -> None:
        """Wait until the target accepts events. Raises GeneratorError."""
        self._sender.connect(self._partitions, deadline_s)

    def send(self, started_us: int) -> None:
        """Send all events on time. started_us: time of second 0, µs since the epoch. Raises GeneratorError."""
        self.started_us, end_us = started_us, started_us + self._spec.duration_s * SECOND_US
        self._pacer = Pacer(
            self._due_us[self._numbers],
            self._events(0),
            started_us=started_us,
            send=self._sender.send,
            now_us=now_us,
            pause=self.poll_and_pause,
        )
        self._pacer.run()
        while self._spec.changed_s and now_us() < end_us:  # a load of 0 may be changed again
            self.poll_and_pause(LONGEST_PAUSE_S)
            self._pacer.run()

    def run(self, begin: Callable[[], int], stopped: Event, drain_deadline_s: float) -> GeneratorResult:
        """Call `begin`, send until the end or until `stopped` is set, wait for acknowledgements, and return the result.

        begin: returns the time of second 0, µs since the epoch. A GeneratorError becomes the result's first error.
        """

        def send() -> GeneratorError | None:
            try:
                self.send(begin())
            except GeneratorError as error:
                return error
            return None

        sending = gevent.spawn(send)
        gevent.wait([stopped, sending], count=1)
        interrupted = not sending.ready()
        sending.kill()
        if sending.exception is not None:
            raise sending.exception
        error = None if interrupted or sending.value is None else str(sending.value)
        self._sender.drain(INTERRUPTED_DRAIN_S if interrupted or error else drain_deadline_s)
        return self.result(interrupted=interrupted, error=error)

    def poll_and_pause(self, pause_s: float) -> None:
        """Process delivery reports, then pause. Raises GeneratorError."""
        self._sender.poll()
        if self._pacer is not None and time.monotonic() >= self._look_s:
            self._read_change(self._pacer)
        pause(pause_s)

    def result(self, *, interrupted: bool = False, error: str | None = None) -> GeneratorResult:
        """Return the result so far. error: is reported instead of the first error of the sender."""
        sender, sent = self._sender, self._numbers[: self._sender.produced]
        lateness_us = np.zeros(0, np.int64) if self._pacer is None else self._pacer.lateness_us
        p50_us, p99_us, max_us = (lateness_percentile_us(lateness_us, share) for share in (0.5, 0.99, 1.0))
        limit_us = lateness_limit_us(self._spec.latency_target_s)
        first_error = error or sender.first_error
        return GeneratorResult(
            scheduled=len(self._numbers),
            repeated=self._repeated,
            produced=sender.produced,
            acknowledged=sender.acknowledged,
            failed=sender.failed,
            invalid_orders=len(np.unique(sent[self._poison[sent]])),
            interrupted=interrupted,
            started_us=self.started_us,
            ended_us=now_us(),
            lateness_p50_us=p50_us,
            lateness_p99_us=p99_us,
            lateness_max_us=max_us,
            lateness_limit_us=limit_us,
            valid=p99_us is not None
            and p99_us <= limit_us
            and sender.acknowledged == len(self._numbers)
            and first_error is None,
            cpu_s=round(time.process_time(), 3),
            first_error=first_error,
        )


def await_start(settings: DriverSettings, pause: Pause) -> int:
    """Wait for the start file and return the start of the run, µs since the epoch. Raises GeneratorError."""
    if not settings.start_file:
        return -(-(now_us() + LEAD_US) // 1_000_000) * 1_000_000
    path = Path(settings.start_file)
    deadline = time.monotonic() + settings.start_deadline_s
    while time.monotonic() < deadline:
        text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        if text.isdecimal():
            return int(text)
        pause(0.02)
    raise GeneratorError(
        f"{path}: no start time within {settings.start_deadline_s:g} s; "
        "the process that starts the generator must write one (µs since the epoch)"
    )
