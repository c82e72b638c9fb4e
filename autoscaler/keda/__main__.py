"""tailpack scaler, python -m autoscaler.keda: answer KEDA with the newest plan, until SIGTERM or SIGINT.

A separate process next to the autoscaler: it reads the plan topic alone, so it answers while the autoscaler is away or
is replaced, as the replicas go on by the last plan.
"""

import asyncio
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from autoscaler.keda.plans import PlanFollower
from autoscaler.keda.scaler import Scaler, listening
from autoscaler.keda.settings import ANSWERED, EPOCH, PLANNED, KedaSettings
from autoscaler.live.troubles import Troubles, refuse
from autoscaler.live.web import Source, serving
from contracts import logs
from contracts.clock import steady_s
from contracts.connection import Connection, read_settings
from contracts.pages import PortTakenError
from contracts.plan import PlanRecord
from contracts.validation import InvalidSettingsError

log = logging.getLogger("keda")
STUCK_S = 10.0
"""The health page answers 503 when the thread has not looked at the plan topic for this duration."""


def main(config: Path | None = None) -> int:
    """Run until SIGTERM or SIGINT. config: a TOML file; the environment goes first. Returns the exit code."""
    try:
        logs.configure(log.name, os.environ)
        connection, settings = read_settings(os.environ, KedaSettings, config)
        asyncio.run(_run(connection, settings))
    except InvalidSettingsError as wrong:
        return refuse(log, wrong.problems)
    except KafkaException as wrong:  # the client refuses its settings; unreachable brokers are waited for
        return refuse(log, [wrong.args[0].str()])
    except PortTakenError as taken:
        return refuse(log, [str(taken)])
    return 0


async def _run(connection: Connection, settings: KedaSettings) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    registry = CollectorRegistry()
    epoch, planned = EPOCH.gauge(registry), PLANNED.gauge(registry)
    troubles = Troubles(log.warning)

    def news(plan: PlanRecord) -> None:
        epoch.set(plan.epoch)
        planned.set(plan.count)
        loop.call_soon_threadsafe(scaler.changed)

    follower = PlanFollower(connection, news=news, trouble=partial(troubles.tell, "plans"))
    scaler = Scaler(
        lambda: follower.newest if follower.complete else None,
        settings.hpa_tolerance,
        ANSWERED.gauge(registry).set,
    )
    source = Source(
        last_tick=lambda: (int(follower.complete), steady_s() - follower.looked_s),
        plan=lambda: {"in_force": follower.newest},
        registry=registry,
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


if __name__ == "__main__":
    sys.exit(main())
