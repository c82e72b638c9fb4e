"""tailpack scaler, python -m autoscaler.keda: answer KEDA with the newest plan, until SIGTERM or SIGINT.

A separate process next to the autoscaler: it reads the plan topic alone, so it answers while the autoscaler is away or
is replaced, as the replicas go on by the last plan.
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

from confluent_kafka import KafkaException

from autoscaler.keda.scaler import Scaler, listening
from autoscaler.keda.settings import ANSWERED, EPOCH, PLANNED, KedaSettings
from autoscaler.live.metrics import Shown
from autoscaler.live.plan_log import PlanReader
from autoscaler.live.troubles import Troubles, status_of
from autoscaler.live.web import Source, serving
from contracts.clock import monotonic_s
from contracts.connection import Connection, read_settings
from contracts.plan import PlanRecord

log = logging.getLogger("keda")
ASK_EVERY_S: Final = 1.0
"""How often the brokers are asked where the topic ends: silence alone does not show that they are away."""
PATIENCE_S: Final = 1.0
STUCK_S = 10.0
"""The health page answers 503 when the thread has not looked at the plan topic for this duration."""


def main(config: Path | None = None) -> int:
    """Run until SIGTERM or SIGINT. config: a TOML file; the environment goes first. Returns the exit code."""

    def run() -> int:
        asyncio.run(_run(*read_settings(os.environ, KedaSettings, config)))
        return 0

    return status_of(log, run)


async def _run(connection: Connection, settings: KedaSettings) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    shown = Shown((EPOCH, PLANNED, ANSWERED))
    troubles = Troubles(log.warning)

    def news(plan: PlanRecord) -> None:
        shown[EPOCH].set(plan.epoch)
        shown[PLANNED].set(plan.count)
        loop.call_soon_threadsafe(scaler.changed)

    follower = PlanFollower(connection, news=news, trouble=partial(troubles.tell, "plans"))
    plans = follower.plans
    scaler = Scaler(lambda: plans.newest if plans.complete else None, settings.hpa_tolerance, shown[ANSWERED].set)
    source = Source(
        last_tick=lambda: (int(plans.complete), monotonic_s() - follower.looked_s),
        plan=lambda: {"in_force": plans.newest},
        registry=shown.registry,
        tick_limit_s=STUCK_S,
        troubles=lambda: troubles.now,
    )
    server, port = listening(scaler, settings.grpc_host, settings.grpc_port)
    with serving(source, settings) as begin:
        try:
            follower.start()
            begin()
            await server.start()
            log.info(f"KEDA is answered on port {port}")
            await stop.wait()
        finally:
            await server.stop(grace=0)
            follower.close()


class PlanFollower(threading.Thread):
    """Reads plans until closed.

    news: called from the thread with each newer plan. trouble: called with why plans cannot be read; empty: they can.
    """

    def __init__(
        self, connection: Connection, *, news: Callable[[PlanRecord], None], trouble: Callable[[str], None]
    ) -> None:
        super().__init__(name="plans", daemon=True)
        self.plans = PlanReader(connection, wait_ms=250)
        self._where = f"{self.plans.place.topic} on {connection.bootstrap_servers}"
        self._news, self._trouble = news, trouble
        self._closing = threading.Event()
        self.looked_s = monotonic_s()

    def close(self) -> None:
        """Stop reading."""
        self._closing.set()
        if self.is_alive():
            self.join()
        self.plans.consumer.close()

    def run(self) -> None:
        """Read, and ask the brokers now and then."""
        ask_s = self.looked_s
        while not self._closing.is_set():
            self.looked_s, before = monotonic_s(), self.plans.newest
            self.plans.read_on()
            if self.plans.newest is not None and self.plans.newest is not before:
                self._news(self.plans.newest)
            if monotonic_s() >= ask_s:
                self._ask()
                ask_s = monotonic_s() + ASK_EVERY_S

    def _ask(self) -> None:
        try:
            self.plans.consumer.get_watermark_offsets(self.plans.place, timeout=PATIENCE_S)
        except KafkaException as away:
            newest = self.plans.newest
            known = "none is known" if newest is None else f"plan {newest.epoch} stays in force"
            self._trouble(f"{self._where} cannot be read: {away.args[0].str()}; {known}")
        else:
            self._trouble("")


if __name__ == "__main__":
    sys.exit(main())
