"""A Faust service fetches after pauses, and background topics less often, but no record waits without end."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.structs import TopicPartition

from services.common import pacing
from services.common.pacing import PATIENCE_S, PacedFetcher

ORDERS, STATUS = TopicPartition("orders", 0), TopicPartition("status", 0)
OTHER = TopicPartition("status", 1)  # led by another broker
PAUSE_S = 0.025


class Paced:
    """A fetcher at a chosen time. Each fetch returns records of the chosen partitions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(pacing, "monotonic_s", lambda: self.now_s)
        monkeypatch.setattr(Fetcher, "_get_actions_per_node", lambda _, assignment: ([*assignment.tps], {}, 0, 0, []))

        async def fetch(fetcher: Any, *_: Any) -> bool:
            return bool(fetcher._records)

        monkeypatch.setattr(Fetcher, "_proc_fetch_request", fetch)
        monkeypatch.setattr(Fetcher, "_select_read_replica", lambda _, place: 2 if place == OTHER else 1)
        self.fetcher: Any = object.__new__(Fetcher)
        self.fetcher._in_flight = self.fetcher._pending_tasks = ()
        PacedFetcher.pace(self.fetcher, {"status"}, PAUSE_S)

    def included(self, *more: TopicPartition) -> tuple[Any, Any]:
        """Return the partitions of a fetch that would be sent now, and for how long none may be sent."""
        assignment = SimpleNamespace(tps=[ORDERS, STATUS, *more], state_value=None)
        fetches, _, wait_s, *_ = self.fetcher._get_actions_per_node(assignment)
        return fetches, wait_s

    async def answer(self, *places: TopicPartition, node: int = 1) -> None:
        self.fetcher._records = getattr(self.fetcher, "_records", {}) | dict.fromkeys(places)
        request = SimpleNamespace(topics=[(place.topic, [(place.partition, 0, 0)]) for place in places])
        await self.fetcher._proc_fetch_request(None, node, request)


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> Paced:
    return Paced(monkeypatch)


async def test_orders_that_arrive_in_the_pause_after_a_fetch_share_the_next_one(paced: Paced) -> None:
    assert paced.included() == ([ORDERS, STATUS], 0)
    await paced.answer(ORDERS)
    assert paced.included() == ([], pytest.approx(PAUSE_S))
    paced.now_s += PAUSE_S / 2
    await paced.answer(ORDERS, node=2)
    assert paced.included() == ([], pytest.approx(PAUSE_S / 2)), "answers do not prolong a pause"
    paced.now_s += PAUSE_S
    assert paced.included() == ([ORDERS, STATUS], 0)


async def test_after_background_records_its_broker_sends_only_orders_for_a_while_and_at_once(paced: Paced) -> None:
    await paced.answer(STATUS)
    assert paced.included(OTHER) == ([ORDERS, OTHER], 0), "another broker does not wait"
    assert paced.fetcher._fetch_max_wait_ms == pacing.PARTIAL_FETCH_WAIT_MS
    paced.now_s += 0.6 * PATIENCE_S
    await paced.answer(OTHER, node=2)
    assert paced.included(OTHER) == ([ORDERS], 0)
    paced.now_s += 0.6 * PATIENCE_S
    assert paced.included(OTHER) == ([ORDERS, STATUS], 0), "the other broker does not prolong the wait"
    paced.now_s += PATIENCE_S
    assert paced.included(OTHER) == ([ORDERS, STATUS, OTHER], 0)
    assert paced.fetcher._fetch_max_wait_ms == pacing.FETCH_WAIT_MS


async def test_an_empty_answer_starts_no_pause(paced: Paced) -> None:
    await paced.answer()
    assert paced.included() == ([ORDERS, STATUS], 0)
