"""Run single steps of aiokafka's coordinator and fetcher against a scripted broker."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

from services.consumer.poller import change_assignment

TOPIC = "requests"
ZERO, ONE = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
Check = Callable[[], Awaitable[None]]


class Checks(dict[str, Check]):
    """Name of a fact about aiokafka → function that checks it."""

    def of(self, name: str) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            self[name] = check
            return check

        return register


class Cluster:
    def add_listener(self, listener: Any) -> None: ...

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0, 1}

    def leader_for_partition(self, partition: TopicPartition) -> int:
        return 0

    def broker_metadata(self, node: int) -> None: ...


class Wire:
    """Fake of aiokafka's client, which records requests by class name."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self._loop = asyncio.get_running_loop()
        self._metadata_max_age_ms = 1000
        self.sent: list[tuple[str, Any]] = []
        self.answers: dict[str, list[Any]] = {}
        self.at: dict[str, Callable[[], None]] = {}
        """Called while a request is in flight."""

    async def send(self, node: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
        kind = type(request).__name__.removesuffix("Request")
        self.sent.append((kind, request.prepare({request.API_KEY: (0, 4)})))
        self.at.get(kind, lambda: None)()
        return self.answers[kind].pop(0)

    async def ready(self, node: int, *, group: Any) -> bool:
        return False

    def set_topics(self, topics: Any) -> None: ...

    async def _maybe_wait_metadata(self) -> None: ...


class Assignor:
    name = "plan"
    assign: Any = None

    def metadata(self, topics: Any) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, [TOPIC], b"")

    def on_assignment(self, assignment: Any) -> None: ...


def joined(error: Any = None, *, leader: str = "me") -> SimpleNamespace:
    members = [("me", ConsumerProtocolMemberMetadata(0, [TOPIC], b"").encode())]
    return SimpleNamespace(
        API_VERSION=2,
        error_code=error.errno if error else 0,
        generation_id=8,
        group_protocol="plan",
        leader_id=leader,
        member_id="me",
        members=members,
    )


def synced() -> SimpleNamespace:
    share = ConsumerProtocolMemberAssignment(0, [(TOPIC, [0])], b"").encode()
    return SimpleNamespace(error_code=0, member_assignment=share)


async def take_turns(count: int = 20) -> None:
    """Let the event loop take `count` turns, in which no time passes."""
    for _ in range(count):
        await asyncio.sleep(0)


class Group:
    """A subscribed member in generation 7. Its coordination task is stopped, so that tests run its steps."""

    async def __aenter__(self) -> "Group":
        self.wire, self.assignor = Wire(), Assignor()
        self.state = SubscriptionState()
        self.state.register_fetch_waiters(set())
        self.coordinator = GroupCoordinator(
            self.wire,
            self.state,
            group_id="group",
            assignors=[self.assignor],
            enable_auto_commit=False,
            retry_backoff_ms=1,
        )
        self.coordinator._coordination_task.cancel()
        await asyncio.gather(self.coordinator._coordination_task, return_exceptions=True)
        self.state.subscribe({TOPIC})
        self.coordinator.coordinator_id, self.coordinator.generation, self.coordinator.member_id = 0, 7, "me"
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)  # a task that has not begun would let its cancellation out
        await self.coordinator._stop_heartbeat_task()
        await self.coordinator._stop_commit_offsets_refresh_task()

    def rebalance(self) -> CoordinatorGroupRebalance:
        one = self.coordinator
        return CoordinatorGroupRebalance(one, "group", 0, self.state.subscription, [self.assignor], 6000, 1)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.wire.sent]


class Fetching:
    """A fetcher of partition 0 at offset 0. Its own task is stopped, so that tests run its steps."""

    async def __aenter__(self) -> "Fetching":
        self.wire = Wire()
        self.state = SubscriptionState()
        self.state.subscribe({TOPIC})
        self.fetcher = Fetcher(self.wire, self.state, auto_offset_reset="earliest")
        self.fetcher._fetch_task.cancel()
        await asyncio.gather(self.fetcher._fetch_task, return_exceptions=True)
        self.consumer = SimpleNamespace(_subscription=self.state, _fetcher=self.fetcher)
        self.out_of_range: list[int] = []
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def change(self, *partitions: TopicPartition, **keywords: Any) -> None:
        change_assignment(self.consumer, set(partitions), keywords.get("positions", {}), self.out_of_range.append)

    @property
    def assignment(self) -> Any:
        return self.state.subscription.assignment

    async def respond(self, meanwhile: Callable[[], None], error: int = 0) -> dict[TopicPartition, Any]:
        """Fetch partition 0 from its position. `meanwhile` is called before the answer arrives."""
        ((_, request),) = self.fetcher._get_actions_per_node(self.assignment)[0]
        data = (0, error, 3, 3, [], batch())
        self.wire.answers = {"Fetch": [SimpleNamespace(API_VERSION=4, topics=[(TOPIC, [data])])]}
        self.wire.at = {"Fetch": meanwhile}
        await self.fetcher._proc_fetch_request(self.assignment, 0, request)
        return dict(self.fetcher._records)


def batch() -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 10_000)
    for offset in range(3):
        builder.append(offset, 1, b"key", b"value", [])
    return bytes(builder.build())
