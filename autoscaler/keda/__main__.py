"""python -m autoscaler.keda: answer KEDA with the newest plan, until SIGTERM or SIGINT.

A process of its own, beside the autoscaler: it reads the plan topic and nothing else, so it answers while the
autoscaler is away, is replaced, or was never started again, as the replicas go on by the last plan.
"""

import asyncio
import logging
import os
import signal
import sys
from functools import partial

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from autoscaler.keda import metrics
from autoscaler.keda.plans import PlanFollower
from autoscaler.keda.scaler import PortUnusableError, Scaler, listening
from autoscaler.keda.settings import KedaSettings
from autoscaler.live.troubles import Troubles
from autoscaler.live.web import Source, bound
from contracts import logs
from contracts.clock import steady_s
from contracts.connection import Connection, read_settings
from contracts.pages import PortTakenError
from contracts.plan import PlanRecord
from contracts.validation import InvalidSettingsError

log = logging.getLogger("keda")
EXIT_SETTINGS = 2
STUCK_S = 10.0
"""After so long without a look at the plan topic the health page says so."""


def main() -> int:
    """Run until told to stop. Returns the exit code."""
    try:
        logs.configure(log.name, os.environ)
        connection, settings = read_settings(os.environ, KedaSettings)
        asyncio.run(_run(connection, settings))
    except InvalidSettingsError as wrong:
        return _refuse(*wrong.problems)
    except KafkaException as wrong:  # of the client's own settings; brokers that are away are waited for
        return _refuse(wrong.args[0].str())
    except (PortTakenError, PortUnusableError) as taken:
        return _refuse(str(taken))
    return 0


async def _run(connection: Connection, settings: KedaSettings) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    registry = CollectorRegistry()
    epoch, planned = metrics.EPOCH.gauge(registry), metrics.PLANNED.gauge(registry)
    troubles = Troubles(log.warning)

    def news(plan: PlanRecord) -> None:
        epoch.set(plan.epoch)
        planned.set(plan.count)
        loop.call_soon_threadsafe(scaler.changed)

    follower = PlanFollower(connection, news=news, trouble=partial(troubles.tell, "plans"))
    scaler = Scaler(
        lambda: follower.newest if follower.complete else None,
        settings.hpa_tolerance,
        metrics.ANSWERED.gauge(registry).set,
    )
    source = Source(
        last_tick=lambda: (int(follower.complete), steady_s() - follower.looked_s),
        plan=lambda: {"in_force": follower.newest},
        decisions=lambda limit: [],
        registry=registry,
        tick_limit_s=STUCK_S,
        troubles=lambda: troubles.now,
    )
    server, port = listening(scaler, settings.grpc_host, settings.grpc_port)
    web = bound(source, settings)
    try:
        follower.start()
        if web is not None:
            web.start()
        await server.start()
        log.info(f"KEDA is answered on port {port}")
        await stop.wait()
    finally:
        await server.stop(grace=0)
        follower.close()
        if web is not None:
            web.close()


def _refuse(*problems: str) -> int:
    for problem in problems:
        log.error(problem)
    return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main())
