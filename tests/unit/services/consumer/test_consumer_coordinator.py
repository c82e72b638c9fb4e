"""The steps of the group coordinator, against a scripted broker."""

import asyncio
from types import SimpleNamespace

from aiokafka.errors import RebalanceInProgressError
from aiokafka_bench import Group, joined, take_turns

from services.consumer.coordinator import PlanCoordinator
from services.consumer.lease import Lease

HOUR_MS = 3_600_000


async def test_a_member_whose_rebalance_was_overtaken_by_the_next_one_joins_that_one_without_a_pause():
    async with Group() as group:
        coordinator = group.coordinator
        coordinator.__class__ = PlanCoordinator
        coordinator.lease, coordinator._retry_backoff_ms = Lease(6.0, 10.0), HOUR_MS
        overtaken = SimpleNamespace(error_code=RebalanceInProgressError.errno)
        group.wire.answers = {"JoinGroup": [joined(leader="other")], "SyncGroup": [overtaken]}
        joining = asyncio.ensure_future(coordinator._do_rejoin_group(group.state.subscription))
        await take_turns()
        assert joining.done(), "the others wait for this member while it pauses"
        assert not joining.result()
        assert coordinator.need_rejoin(group.state.subscription)
        assert coordinator._retry_backoff_ms == HOUR_MS, "other errors are retried with a pause"
