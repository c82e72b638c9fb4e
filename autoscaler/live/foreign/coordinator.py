"""The coordinator of a group: requests to it, and its data about the members."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import KafkaError, NoError, for_code

from autoscaler.live.foreign import wire
from autoscaler.live.foreign.members import Member
from contracts.connection import Connection

BOOTSTRAP_TIMEOUT_S: Final = 1.5
"""Longest wait for one bootstrap server, so that a host that vanished leaves time for the others."""
CLOSE_TIMEOUT_S: Final = 0.5
GROUP_ID_NOT_FOUND: Final = 69


class Coordinator:
    """The connection to the coordinator of `group`."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection, self.group = connection, group
        self.known: dict[str, Member] = {}
        """Member id → member, from the last description. The autoscaler itself is left out."""
        self._client: Any = None
        self.node: Any = None
        """Id of the broker."""

    async def connect(self) -> None:
        """Find the coordinator. Raises KafkaError."""
        self._client = AIOKafkaClient(
            **self._connection.aiokafka(),
            client_id=wire.PLANNER,
            request_timeout_ms=round(BOOTSTRAP_TIMEOUT_S * 1000),
            metadata_max_age_ms=10_000,
        )
        async with asyncio.timeout(wire.ANSWER_TIMEOUT_S):
            await self._client.bootstrap()
            self._client._request_timeout_ms = round(wire.REQUEST_TIMEOUT_S * 1000)
            self.node = await self._client.coordinator_lookup(CoordinationType.GROUP, self.group)

    async def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(OSError):  # TLS waits 30 s for a vanished host, which would cost the session
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await client.close()

    async def send(self, kind: Any, *values: Any) -> Any:
        """Send a request of a kind in `wire`. A join may take long, so the membership has its own connection."""
        if self._client is None:
            raise errors.KafkaConnectionError("not connected")
        is_own = kind in (wire.JOIN, wire.SYNC, wire.HEARTBEAT)
        connection = ConnectionGroup.COORDINATION if is_own else ConnectionGroup.DEFAULT
        limit_s = wire.REQUEST_TIMEOUT_S if kind is wire.JOIN else wire.ANSWER_TIMEOUT_S
        of = {wire.DESCRIBE: [[self.group]], wire.DESCRIBE_ASSIGNED: [[self.group]], wire.LIST: []}
        request = wire.VersionedRequest(kind, *of.get(kind, [self.group]), *values)
        async with asyncio.timeout(limit_s):
            return await self._client.send(self.node, request, group=connection)

    async def describe(self) -> Any:
        """Return the description of the group, and remember its members. Raises KafkaError."""
        (found,) = (await self.send(wire.DESCRIBE, False)).groups
        if for_code(found[0]) is not NoError:
            raise for_code(found[0])(self.group)
        self.known = {
            id_: Member(id_, instance or "", client, host.lstrip("/"))
            for id_, instance, client, host, *_ in found[5]
            if instance != wire.PLANNER
        }
        return found

    async def describe_assigned(self) -> Any:
        """Return the description of a group whose partitions brokers assign; None: it is none. Raises KafkaError."""
        (found,) = (await self.send(wire.DESCRIBE_ASSIGNED, False, {})).groups
        if found[0] not in (NoError.errno, GROUP_ID_NOT_FOUND):
            raise for_code(found[0])(self.group)
        return None if found[0] else found

    async def find_type(self) -> str:
        """Return streams or share if the group is of that type, else an empty text. Raises KafkaError."""
        listed = (await self.send(wire.LIST, [], ["streams", "share"], {})).groups
        return next((one[3].lower() for one in listed if one[0] == self.group), "")

    async def committed(self, topic: str, partitions: int) -> dict[int, int]:
        """Return partition → committed offset, for partitions with a commit. Raises KafkaError."""
        answer = await self.send(wire.COMMITTED, [(topic, list(range(partitions)))])
        return {one[0]: one[1] for _, listed in answer.topics for one in listed if one[1] >= 0}

    async def leave(self, members: Mapping[str, str | None]) -> None:
        """Let members leave. members: member id → instance id."""
        with suppress(KafkaError, OSError, TimeoutError):  # else they leave at the end of their sessions
            if members:
                await self.send(wire.LEAVE, [*members.items()])

    async def count_partitions(self, topic: str, members: Iterable[Member]) -> dict[str, int]:
        """Return the number of partitions of `topic` and of all topics that members subscribe to."""
        topics, cluster = {topic}.union(*(member.subscription.topics for member in members)), self._client.cluster
        if topics - cluster.topics():
            async with asyncio.timeout(wire.ANSWER_TIMEOUT_S / 2):
                await self._client.set_topics(topics)
        return {name: len(cluster.partitions_for_topic(name) or ()) for name in topics}


TOO_OLD: Final = "its brokers are too old, or their group.version is 0; consumers = assigned needs Kafka 4.0"
ANOTHER: Final = "its members use another assignor than those in led_protocols, or are no consumers"
REASONS: Final = {
    errors.GroupAuthorizationFailedError: "no right to join it; allow READ on the group",
    errors.TopicAuthorizationFailedError: "allow DESCRIBE on the topics of the group and on the prefix tailpack-plan-",
    errors.IncompatibleBrokerVersion: TOO_OLD,
    errors.UnsupportedVersionError: TOO_OLD,
    errors.InconsistentGroupProtocolError: ANOTHER,
}


def describe_error(failed: BaseException) -> str:
    """Return why the group cannot be scaled, for an operator."""
    return REASONS.get(type(failed)) or f"{type(failed).__name__}: {failed}".rstrip(": ")
