"""Who is in a group and owns what, asked of the brokers in the background: by an admin client, so nobody joins."""

from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from autoscaler.live.clients import client
from contracts.clock import steady_s
from contracts.connection import Connection

DEADLINE_S: Final = 5.0
STALE_S: Final = 15.0
"""What was told so long ago says nothing of now."""


class MemberReader:
    """Asks again at each look once the last question is answered."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._admin = AdminClient(client(connection))
        self._group = group
        self._topic = topic
        self._asked: Future[Any] | None = None
        self._known: dict[str, frozenset[int]] | None = None
        self._known_s = 0.0
        self.trouble = ""
        """Why they are not known now; empty: they are, or are being asked for."""

    def look(self) -> dict[str, frozenset[int]] | None:
        """Return member → its partitions of the topic, as last told; None where nothing was told lately."""
        self._admin.poll(0)
        if self._asked is not None and self._asked.done():
            self._take(self._asked)
            self._asked = None
        if self._asked is None:
            self._asked = self._admin.describe_consumer_groups([self._group], request_timeout=DEADLINE_S)[self._group]
        return self._known if steady_s() - self._known_s < STALE_S else None

    def _take(self, answer: "Future[Any]") -> None:
        try:
            members = answer.result(0).members
        except KafkaException as failed:
            self.trouble = f"{self._group}: {failed.args[0].str()}"
            return
        self._known = {
            one.member_id: frozenset(
                place.partition for place in one.assignment.topic_partitions if place.topic == self._topic
            )
            for one in members
        }
        self._known_s, self.trouble = steady_s(), "" if members else f"{self._group} has no members"
