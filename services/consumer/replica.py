"""One replica, put together: connects, warms up, serves under the plan, and leaves in order."""

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import Any, Final

from aiokafka.errors import KafkaError

from contracts.connection import Connection
from contracts.progress import Progress, ReplicaState
from contracts.topics import Topic, qualified
from services.consumer import logs
from services.consumer.clients import Clients, Work
from services.consumer.commits import Committer
from services.consumer.errors import ReplicaError
from services.consumer.membership import Membership
from services.consumer.progress import ProgressReporter
from services.consumer.settings import ReplicaSettings
from services.consumer.worker import Worker, now_us

log = logging.getLogger(__name__)

LEAVE_DEADLINE_S: Final = 4.0
"""Beyond the event in flight. What is not committed by then is served again: a stop never waits for Kafka's return."""


async def run_replica(
    settings: ReplicaSettings, connection: Connection, work: Work, *, pid: int, stop: asyncio.Event
) -> None:
    """Serve until `stop` is set. Raises ReplicaError when the replica cannot start or cannot go on."""
    incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"  # sorts by start time
    clients = Clients(settings, connection, work, incarnation)
    try:
        await clients.start()
        logs.connected()
        await Replica(settings, connection, work, clients, incarnation=incarnation, pid=pid).serve(stop)
    except KafkaError as wrong:
        raise ReplicaError(f"{settings.replica} cannot go on: {wrong!r}") from wrong
    finally:
        await clients.close()


class Replica:
    """The duties of one process of the group, over started clients."""

    def __init__(
        self,
        settings: ReplicaSettings,
        connection: Connection,
        work: Work,
        clients: Clients,
        *,
        incarnation: str,
        pid: int,
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._incarnation = incarnation
        self._pid = pid
        self._progress = ProgressReporter(
            clients.output, qualified(connection.namespace, Topic.PROGRESS), self._snapshot
        )
        self._worker = Worker(
            consumer=clients.consumer,
            output=clients.output,
            handler=work.handler,
            service_time_s=settings.service_time_s,
            namespace=connection.namespace,
            topic=clients.input_topic,
        )
        self._committer = Committer(clients.coordinator, clients.input_topic, settings.commit_interval_s)
        self._membership = Membership(
            replica=settings.replica,
            clients=clients,
            worker=self._worker,
            committer=self._committer,
            changed=self._progress.changed,
        )

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set or a duty fails; then finish the event in flight, commit, and leave the group."""
        await self._progress.report()
        duties: tuple[Coroutine[Any, Any, Any], ...] = (
            stop.wait(),
            self._worker.poll(),
            self._worker.serve(),
            self._committer.run(),
            self._clients.plans.follow(),
            self._progress.run(),
            self._membership.run(),
        )
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(duty) for duty in duties]
        try:
            done, _ = await asyncio.wait([*tasks, self._clients.failed], return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()  # stop.wait() is the only duty that ends without an error
            await asyncio.wait_for(self._part(), self._settings.service_time_s + LEAVE_DEADLINE_S)
        except TimeoutError:
            log.warning("left without an answer from Kafka; what was not committed will be served again")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _part(self) -> None:
        await self._membership.leave(ReplicaState.STOPPING)
        await self._progress.report()
        await self._clients.output.drained()

    def _snapshot(self) -> Progress:
        worker, membership, plan = self._worker, self._membership, self._clients.plans.newest
        serving = membership.state is ReplicaState.MEMBER
        return Progress(
            replica=self._settings.replica,
            incarnation=self._incarnation,
            pid=self._pid,
            member_id=membership.member_id,
            generation=membership.generation,
            epoch=plan.epoch if plan else 0,
            assigned_epoch=self._clients.assignor.epoch,
            state=membership.state,
            partitions=self._clients.assignor.owned if serving else (),
            positions=worker.inbox.positions if serving else {},
            processed=worker.processed,
            busy_us=worker.busy_us,
            rebalances=membership.rebalances,
            rebalance_us=membership.rebalance_us,
            at_us=now_us(),
        )
