"""One load from ready to drained, as the single Locust user carries it out."""

import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaError

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.topics import qualified
from loadgen.drivers.delivery import Delivery, GeneratorError
from loadgen.drivers.settings import Settings
from loadgen.events import events, input_topic
from loadgen.orders import Orders
from loadgen.pacing import Pacer
from loadgen.result import READY_FILE, GeneratorResult, lateness_limit_us, lateness_percentile_us
from loadgen.spec import LoadSpec


class Job:
    """Runs the load; its result can be asked for at any time."""

    def __init__(
        self,
        spec: LoadSpec,
        connection: Connection,
        settings: Settings,
        *,
        pause: Callable[[float], None],
        settled: Callable[[int, float, KafkaError | None], None],
    ) -> None:
        self._spec = spec
        self._settings = settings
        self._pause = pause
        self._schedule = spec.schedule()
        self._orders = Orders(connection.namespace, spec.seed, spec.invalid_share)
        topic, self._partitions = input_topic(spec)
        self._delivery = Delivery(connection, qualified(connection.namespace, topic), pause=pause, settled=settled)
        self._pacer: Pacer | None = None
        self._started_us: int | None = None

    def run(self) -> None:
        """Connect, say so, wait for the start, send. Raises GeneratorError."""
        self._delivery.connect(self._partitions, self._settings.connect_deadline_s)
        (Path(self._settings.out_dir) / READY_FILE).touch()
        self._started_us = self._await_start()
        self._pacer = Pacer(
            self._schedule.offset_us,
            events(self._spec, self._schedule, self._orders, self._started_us),
            started_us=self._started_us,
            send=self._delivery.send,
            now_us=now_us,
            pause=self._breathe,
        )
        self._pacer.run()

    def drain(self, deadline_s: float) -> None:
        """Wait for the acknowledgements of what was sent."""
        self._delivery.drain(deadline_s)

    def result(self, *, interrupted: bool, error: str | None = None) -> GeneratorResult:
        """Return what was done so far."""
        delivery = self._delivery
        lateness_us = self._schedule.offset_us[:0] if self._pacer is None else self._pacer.lateness_us
        p99_us = lateness_percentile_us(lateness_us, 0.99)
        limit_us = lateness_limit_us(self._spec.latency_target_s)
        return GeneratorResult(
            scheduled=len(self._schedule),
            produced=delivery.produced,
            acknowledged=delivery.acknowledged,
            failed=delivery.failed,
            invalid_orders=sum(self._orders.flaw(number) is not None for number in range(delivery.produced)),
            interrupted=interrupted,
            started_us=self._started_us,
            ended_us=now_us(),
            lateness_p50_us=lateness_percentile_us(lateness_us, 0.5),
            lateness_p99_us=p99_us,
            lateness_max_us=lateness_percentile_us(lateness_us, 1.0),
            lateness_limit_us=limit_us,
            valid=p99_us is not None and p99_us <= limit_us,
            cpu_s=round(time.process_time(), 3),
            first_error=error or delivery.first_error,
        )

    def _breathe(self, pause_s: float) -> None:
        self._delivery.poll()
        self._pause(pause_s)

    def _await_start(self) -> int:
        """Return the start of the run, µs since the epoch."""
        path = Path(self._settings.start_file)
        deadline = time.monotonic() + self._settings.start_deadline_s
        while time.monotonic() < deadline:
            text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
            if text.isdecimal():
                return int(text)
            self._breathe(0.02)
        raise GeneratorError(
            f"{path}: no start time after {self._settings.start_deadline_s:g} s; "
            "whoever starts the generator must write one (µs since the epoch)"
        )
