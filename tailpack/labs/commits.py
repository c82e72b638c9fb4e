"""Samples the group's committed offsets, to see that none ever goes back."""

import time
from typing import Final

import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.handover.evidence import UNKNOWN, IntArray
from contracts.connection import Connection
from contracts.topics import Group, Topic, qualified
from tailpack.labs.clients import reader

EVERY_S: Final = 0.3
DEADLINE_S: Final = 0.5


class Commits:
    """Asked by a consumer that never joins: an admin request whose connection drops can end the process."""

    def __init__(self, connection: Connection, partitions: int) -> None:
        group = qualified(connection.namespace, Group.PAYMENT)
        self._consumer = Consumer(reader(connection) | {"group.id": group})
        topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        self._samples: list[list[int]] = []
        self._due_s = 0.0

    def sample(self) -> None:
        """Ask, if it is time again. No answer: no sample."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + EVERY_S
        try:
            found = self._consumer.committed(self._places, timeout=DEADLINE_S)
        except KafkaException:
            return  # a coordinator on the move; the next sample is compared with the last one
        self._samples.append([UNKNOWN if one.error or one.offset < 0 else one.offset for one in found])

    def samples(self) -> IntArray:
        """Return all of it, shape (samples, partitions)."""
        return np.array(self._samples, dtype=np.int64).reshape(-1, len(self._places))

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()
