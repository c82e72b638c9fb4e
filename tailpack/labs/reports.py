"""Follows the progress topic: what each replica tells of itself."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from confluent_kafka import Consumer, TopicPartition

from contracts.connection import Connection
from contracts.progress import Progress, ReplicaState, Round
from contracts.topics import Topic, qualified
from tailpack.labs.clients import reader

_decoder = msgspec.json.Decoder(Progress)


class Reports:
    """The newest report of each replica, and every round that one of them told of."""

    def __init__(self, connection: Connection) -> None:
        self._consumer = Consumer(reader(connection))
        self._consumer.assign([TopicPartition(qualified(connection.namespace, Topic.PROGRESS), 0, 0)])
        self._newest: dict[str, Progress] = {}
        self._first_us: dict[str, int] = {}
        self.rounds: list[tuple[str, Round]] = []
        """(replica, round) in the order of the reports."""

    def poll(self) -> Mapping[str, Progress]:
        """Take what has arrived; return the newest report of each replica that ever reported."""
        for record in self._consumer.consume(1000, 0):
            if record.error() is None:
                report = _decoder.decode(record.value())
                self._newest[report.replica] = report
                self._first_us.setdefault(report.replica, report.at_us)
                self.rounds += [(report.replica, one) for one in report.rounds]
        return MappingProxyType(self._newest)

    @property
    def newest(self) -> Mapping[str, Progress]:
        """What `poll` returned last."""
        return MappingProxyType(self._newest)

    def state(self, replica: str) -> ReplicaState | None:
        """Return the state that `replica` reported last; None before its first report."""
        report = self._newest.get(replica)
        return report.state if report else None

    def generation(self) -> int:
        """Return the newest generation of the group that anybody reported."""
        return max((report.generation for report in self._newest.values()), default=0)

    def first_us(self, replica: str) -> int | None:
        """Return when `replica` reported for the first time: connected and about to join. None before."""
        return self._first_us.get(replica)

    def owners(self, among: Iterable[str]) -> dict[int, str]:
        """Partition → replica, by the newest reports of those named: what is dead says nothing any more."""
        mine = [self._newest[name] for name in among if name in self._newest]
        return {partition: report.replica for report in mine for partition in report.partitions}

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()
