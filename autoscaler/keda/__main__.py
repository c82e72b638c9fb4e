"""`tailpack scaler`, `python -m autoscaler.keda`: report the newest plan to KEDA until SIGTERM or SIGINT.

It is a separate process and reads only the plan topic. So it answers while the autoscaler is down or replaced, and the
replicas keep running by the last plan.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from autoscaler.keda.scaler import EPOCH, PLANNED, KedaSettings, Scaler, bind_server
from autoscaler.live.metrics import MetricSet
from autoscaler.live.plan_log import PlanReader
from autoscaler.live.problems import Problems, exit_status_of
from autoscaler.live.web import Source, serving
from contracts.clock import monotonic_s
from contracts.connection import Connection, read_settings
from contracts.plan import PlanRecord
from contracts.preflight import client_config
from contracts.topics import ScaledGroup

log = logging.getLogger("keda")
ASK_EVERY_S: Final = 1.0
"""Interval of requests to the brokers. Without them an unreachable broker looks like a topic without new plans."""
ASK_TIMEOUT_S: Final = 1.0
OnPlan = Callable[[PlanRecord], None]
MAX_POLL_AGE_S = 10.0
"""The health page answers 503 if the plan topic was not polled for this duration."""


def main(config: Path | None = None) -> int:
    """Run until SIGTERM or SIGINT. config: a TOML file. The environment overrides it. Returns the exit code."""

    def run() -> int:
        asyncio.run(_run(*read_settings(os.environ, KedaSettings, config)))
        return 0

    return exit_status_of(log, run)


async def _run(connection: Connection, settings: KedaSettings) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    shown = MetricSet((EPOCH, PLANNED))
    problems = Problems(log.warning)

    def on_plan(plan: PlanRecord) -> None:
        shown[EPOCH].set(plan.epoch)
        shown[PLANNED].set(plan.count)
        loop.call_soon_threadsafe(scaler.changed)

    follower = PlanFollower(connection, settings, on_plan=on_plan, report_problem=partial(problems.report, "plans"))
    plans = follower.plans
    scaler = Scaler(lambda: plans.newest if plans.complete else None, settings.hpa_tolerance)
    source = Source(
        last_tick=lambda: (int(plans.complete), monotonic_s() - follower.last_poll_s),
        plan=lambda: {"in_force": plans.newest},
        registry=shown.registry,
        tick_limit_s=MAX_POLL_AGE_S,
        problems=lambda: problems.current,
    )
    server, port = bind_server(scaler, settings.grpc_host, settings.grpc_port)
    with serving(source, settings) as begin:
        try:
            follower.start()
            begin()
            await server.start()
            log.info(f"listening for KEDA on port {port}")
            await stop.wait()
        finally:
            await server.stop(grace=0)
            follower.close()


class PlanFollower(threading.Thread):
    """Reads plans until closed.

    on_plan: called from the thread with each newer plan. report_problem: called with the current problem; empty: none.
    """

    def __init__(
        self, connection: Connection, scaled: ScaledGroup, *, on_plan: OnPlan, report_problem: Callable[[str], None]
    ) -> None:
        super().__init__(name="plans", daemon=True)
        self.plans = PlanReader(connection, scaled, wait_ms=250)
        self._asking = Consumer(client_config(connection, group_id="unused"))
        self._where = f"{self.plans.place[0]} on {connection.bootstrap_servers}"
        self._on_plan, self._report_problem = on_plan, report_problem
        self._closing = threading.Event()
        self.last_poll_s = monotonic_s()

    def close(self) -> None:
        """Stop reading."""
        self._closing.set()
        if self.is_alive():
            self.join()
        self.plans.records.close()
        self._asking.close()

    def run(self) -> None:
        """Read plans, and send the brokers a request every second."""
        ask_s = self.last_poll_s
        while not self._closing.is_set():
            self.last_poll_s, before = monotonic_s(), self.plans.newest
            self.plans.read_on()
            if self.plans.newest is not None and self.plans.newest is not before:
                self._on_plan(self.plans.newest)
            if monotonic_s() >= ask_s:
                self._check_brokers()
                ask_s = monotonic_s() + ASK_EVERY_S

    def _check_brokers(self) -> None:
        try:
            self._asking.get_watermark_offsets(TopicPartition(*self.plans.place), timeout=ASK_TIMEOUT_S)
        except KafkaException as error:
            newest = self.plans.newest
            known = "no plan is known" if newest is None else f"plan {newest.epoch} stays in force"
            self._report_problem(f"cannot read {self._where}: {error.args[0].str()}; {known}")
        else:
            self._report_problem(self.plans.unusable)


if __name__ == "__main__":
    sys.exit(main())
