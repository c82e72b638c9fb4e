"""Payment as a service: each event takes its service time on the replica's one server, then its verdict is written."""

import asyncio

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.topics import Group, Topic, qualified
from services.consumer import Event, PlanConsumer, Topics
from services.payment.app import settle
from services.payment.pace import Pace
from services.payment.settings import ReplicaSettings, options_of


class PaymentService:
    """One replica of the Payment group."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        self._settings = settings
        self._namespace = connection.namespace
        self._pace = Pace()
        self._last_done_us = 0
        named = {topic: qualified(connection.namespace, topic) for topic in Topic}
        self._names = named
        self.consumer = PlanConsumer(
            settings.replica,
            connection,
            Topics(
                group=qualified(connection.namespace, Group.PAYMENT),
                events=named[Topic.PAYMENTS_REQUESTED],
                plans=named[Topic.PLANS],
                progress=named[Topic.PROGRESS],
                others={
                    named[Topic.PAYMENTS_REQUESTED]: max(1, settings.payment_partitions),
                    named[Topic.PAYMENTS_SETTLED]: 1,
                    named[Topic.DEAD_LETTERS]: 1,
                },
            ),
            self.handle,
            options=options_of(settings),
            busy_s=lambda: self._pace.busy_s,
        )

    async def handle(self, event: Event) -> "asyncio.Future[None]":
        """Serve one event; done once the broker has its output."""
        clock = asyncio.get_running_loop().time
        is_idle = event.received_us > self._last_done_us
        finish_s = self._pace.begin(clock(), self._settings.service_time_of(event.key), idle=is_idle)
        await asyncio.sleep(max(0.0, finish_s - clock()))
        self._last_done_us = now_us()
        outgoing = settle(event, self._settings.replica, self._last_done_us)
        return await self.consumer.send(self._names[outgoing.topic], outgoing.key, outgoing.value)
