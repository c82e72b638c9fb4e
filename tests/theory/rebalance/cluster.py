"""Simulated brokers: logs, leaders and the group's coordinator, for the requests of aiokafka's clients."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from theory.rebalance.group import NONE, NOT_COORDINATOR, Group
from theory.rebalance.network import Network, Reply
from theory.rebalance.processes import Process, Simulation

OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC: Final = 3
NOT_LEADER: Final = 6
FETCH_RECORDS: Final = 20
DETECTION_S: Final = 0.5
"""After this time the other nodes take over the partitions of a node that is away."""
LOADING_S: Final = 0.1


@dataclass
class Record:
    key: bytes | None
    value: bytes | None
    at_ms: int


@dataclass
class Log:
    """One partition."""

    records: list[Record] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    """Producer id → sequence of its last batch, so that a repeated batch is not written again."""

    def batch(self, offset: int) -> bytes:
        """Return the encoded records from `offset` on."""
        if offset >= len(self.records):
            return b""
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        for delta, record in enumerate(self.records[offset : offset + FETCH_RECORDS]):
            builder.append(delta, record.at_ms, record.key, record.value, [])
        built = builder.build()
        struct.pack_into(">q", built, 0, offset)
        return bytes(built)


class Cluster:
    """Nodes 1 to n; node k listens on port k. The callbacks get each accepted record and commit."""

    def __init__(self, sim: Simulation, topics: dict[str, int], nodes: int = 1) -> None:
        self.sim = sim
        self.nodes = dict.fromkeys(range(1, nodes + 1), True)
        self.logs = {(topic, p): Log() for topic, count in topics.items() for p in range(count)}
        self.topics = topics
        self.committed: dict[int, int] = {}
        self.network = Network(sim, self.nodes, self.serve)
        self.group = Group(sim, self._commit)
        self.on_commit: Callable[[str, dict[int, int]], None] = lambda member_id, offsets: None
        self.on_append: Callable[[str, int, Record], None] = lambda topic, partition, record: None
        self.blind: set[str] = set()
        """Processes whose fetches of plans get no answer."""
        self._leading = list(self.nodes)
        """Nodes that lead partitions; the first is the coordinator."""
        self._waiting: list[tuple[set[tuple[str, int]], Callable[[], None]]] = []
        self._producers = 0

    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Append a record, and answer the fetches that wait for it."""
        record = Record(key, value, int(self.sim.now_s * 1000))
        self.logs[topic, partition].records.append(record)
        self.on_append(topic, partition, record)
        ready = [each for each in self._waiting if (topic, partition) in each[0]]
        for each in ready:
            each[1]()

    def restart(self, node: int, down_s: float) -> None:
        """Restart a node: its connections break, and it is back after `down_s` with its stored state."""
        self.nodes[node] = False
        self.network.reset(None, node)
        if node == self._leading[0]:
            self.group.stop()
            self.sim.at(self.sim.now_s + down_s + LOADING_S, self._load)
        self._hand_over(node, down_s)

    def vanish(self, node: int, away_s: float) -> None:
        """Cut off a node's host without closing its connections, until it is back after `away_s`."""
        self.network.cut(None, node, self.sim.now_s + away_s)
        self._hand_over(node, away_s)

    def _hand_over(self, node: int, away_s: float) -> None:
        if away_s > DETECTION_S:
            self.sim.at(self.sim.now_s + DETECTION_S, self._remove_leader, node)
        self.sim.at(self.sim.now_s + away_s, self._restore_node, node)

    def _remove_leader(self, node: int) -> None:
        if node in self._leading and len(self._leading) > 1:
            if node == self._leading[0]:
                self.group.stop()
                self.sim.at(self.sim.now_s + LOADING_S, self._load)
            self._leading.remove(node)

    def _restore_node(self, node: int) -> None:
        self.nodes[node] = True
        if node not in self._leading:
            self._leading.append(node)
        self.sim.at(self.sim.now_s + LOADING_S, self._load)  # it may be the coordinator now

    def _load(self) -> None:
        if self.group.is_away and self.nodes[self._leading[0]]:
            self.group.load()

    def leader(self, partition: int) -> int:
        """Return the node that leads a partition."""
        return self._leading[partition % len(self._leading)]

    def serve(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        """Answer one request, now or later."""
        name = type(request).__name__.strip("_").partition("Request_")[0]
        kind = {"RequestOfVersion": "OffsetFetch"}.get(name, name)  # the only one that is not aiokafka's own
        getattr(self, f"_{kind.lower()}")(node, process, request, reply)

    def _metadata(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        # Numbers only, because aiokafka keeps brokers in sets and hashes of texts differ between runs.
        brokers = [(each, each, each, 0) for each in self.nodes if each in self._leading]
        topics = []
        for topic in self.topics if request.topics is None else request.topics:
            partitions = [
                (NONE, p, self.leader(p), [self.leader(p)], [self.leader(p)]) for p in range(self.topics.get(topic, 0))
            ]
            topics.append((NONE if partitions else UNKNOWN_TOPIC, topic, False, partitions))
        reply(request.RESPONSE_TYPE(brokers, brokers[0][0], topics))

    def _findcoordinator(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        reply(request.RESPONSE_TYPE(0, NONE, "", self._leading[0], f"node-{self._leading[0]}", self._leading[0]))

    def _initproducerid(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        self._producers += 1
        reply(request.RESPONSE_TYPE(0, NONE, self._producers, 0))

    def _offset(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        def found(topic: str, p: int, at_ms: int) -> tuple[int, int, int, int]:
            error = NONE if self.leader(p) == node else NOT_LEADER
            return p, error, -1, 0 if at_ms == -2 else len(self.logs[topic, p].records)

        requested = [(topic, [found(topic, p, at_ms) for p, at_ms in parts]) for topic, parts in request.topics]
        reply(request.RESPONSE_TYPE(0, requested))

    def _fetch(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        requested = {(topic, p): offset for topic, parts in sorted(request.topics) for p, offset, _ in sorted(parts)}
        if process.name in self.blind and ("plans", 0) in requested:
            return
        answers = {at: self._fetched(node, at, offset) for at, offset in requested.items()}

        def answer() -> None:
            if waits in self._waiting:
                self._waiting.remove(waits)
                answers.update({at: self._fetched(node, at, offset) for at, offset in requested.items()})
                reply(make_response())

        def make_response() -> Any:
            topics: dict[str, list[Any]] = {}
            for (topic, p), (error, end, records) in answers.items():
                topics.setdefault(topic, []).append((p, error, end, end, None, records))
            return request.RESPONSE_TYPE(0, list(topics.items()))

        if any(error or records for error, _, records in answers.values()) or request.max_wait_time <= 0:
            reply(make_response())
        else:
            waits = (set(requested), answer)
            self._waiting.append(waits)
            self.sim.at(self.sim.now_s + request.max_wait_time / 1000, answer)

    def _fetched(self, node: int, at: tuple[str, int], offset: int) -> tuple[int, int, bytes]:
        end = len(self.logs[at].records)
        if self.leader(at[1]) != node:
            return NOT_LEADER, -1, b""
        if not 0 <= offset <= end:
            return OUT_OF_RANGE, end, b""
        return NONE, end, self.logs[at].batch(offset)

    def _produce(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        topics = [(topic, [self._write(node, topic, *each) for each in parts]) for topic, parts in request.topics]
        reply(request.RESPONSE_TYPE(topics, 0))

    def _write(self, node: int, topic: str, partition: int, messages: bytes) -> tuple[int, int, int, int]:
        log = self.logs[topic, partition]
        if self.leader(partition) != node:
            return partition, NOT_LEADER, -1, -1
        batches = MemoryRecords(bytes(messages))
        while batches.has_next():
            batch = batches.next_batch()
            if log.sequences.get(batch.producer_id, -1) >= batch.base_sequence:
                continue
            log.sequences[batch.producer_id] = batch.base_sequence
            for record in batch:
                self.append(topic, partition, record.key, record.value)
        return partition, NONE, len(log.records) - 1, -1

    # Requests of the group, which only its coordinator answers

    def _is_coordinator(self, node: int) -> bool:
        return node == self._leading[0] and not self.group.is_away

    def _joingroup(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        if self._is_coordinator(node):
            self.group.join(request, process.name, reply)
        else:
            reply(request.RESPONSE_TYPE(0, NOT_COORDINATOR, -1, "", "", "", []))

    def _syncgroup(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        if self._is_coordinator(node):
            self.group.sync(request, reply)
        else:
            reply(request.RESPONSE_TYPE(NOT_COORDINATOR, b""))

    def _heartbeat(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        ours = self._is_coordinator(node)
        error = self.group.heartbeat(request.member_id, request.generation_id) if ours else NOT_COORDINATOR
        reply(request.RESPONSE_TYPE(error))

    def _leavegroup(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        error = self.group.leave(request.member_id) if self._is_coordinator(node) else NOT_COORDINATOR
        reply(request.RESPONSE_TYPE(error))

    def _offsetcommit(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        offsets = {p: offset for _, parts in request.topics for p, offset, _ in parts}
        error = NOT_COORDINATOR
        if self._is_coordinator(node):
            error = self.group.offset_commit(request.consumer_id, request.consumer_group_generation_id, offsets)
        reply(request.RESPONSE_TYPE([(topic, [(each[0], error) for each in parts]) for topic, parts in request.topics]))

    def _offsetfetch(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        error = NONE if self._is_coordinator(node) else NOT_COORDINATOR
        found = [
            (topic, [(p, self.committed.get(p, -1), -1, "", error, {}) for p in parts], {})
            for topic, parts, _ in request.topics
        ]
        reply(request.RESPONSE_TYPE(0, found, error, {}))

    def _describegroups(self, node: int, process: Process, request: Any, reply: Reply) -> None:
        error = NONE if self._is_coordinator(node) else NOT_COORDINATOR
        reply(request.RESPONSE_TYPE([(error, request.groups[0], str(self.group.state), "consumer", "plan", [])]))

    def _commit(self, member_id: str, offsets: dict[int, int]) -> None:
        self.on_commit(member_id, offsets)
        self.committed |= offsets
