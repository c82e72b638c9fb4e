"""Facts of aiokafka's fetcher that services/consumer relies on. After an upgrade the broken fact is named."""

import asyncio
from functools import partial
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.errors import OffsetOutOfRangeError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import OffsetAndMetadata
from aiokafka_bench import ONE, ZERO, Checks, Fetching, batch, take_turns
from odd_headers import odd_batch

from contracts.unpacking import Records, limit_unpacking, poll_limit
from services.consumer import fetching
from services.consumer.fetching import BatchFetcher

CHECKS = Checks()


def fetched(assignment: Any, position: int) -> FetchResult:
    found = PartitionRecords(ZERO, MemoryRecords(batch()), None, position, None, None, True, 0)
    return FetchResult(ZERO, assignment=assignment, partition_records=found, backoff=0.0)


@CHECKS.of("polls return no records before the first assignment")
async def nothing_yet() -> None:
    async with Fetching() as f:
        poll = asyncio.ensure_future(f.fetcher.fetched_records(set(), timeout=0))
        await asyncio.sleep(0)
        assert not poll.done()
        f.change(ZERO)
        assert await asyncio.wait_for(poll, 1) == {}


@CHECKS.of("a response for a partition without a position is ignored")
async def voided() -> None:
    async with Fetching() as f:
        f.change(ZERO, positions={ZERO: 0})

        def leaves_and_comes_back() -> None:
            f.change()
            f.change(ZERO)

        assert await f.respond(leaves_and_comes_back) == {}
        assert not f.assignment.state_value(ZERO).has_valid_position


@CHECKS.of("a response for an earlier position is ignored")
async def sought() -> None:
    async with Fetching() as f:
        f.change(ZERO, positions={ZERO: 0})
        assert await f.respond(lambda: f.change(ZERO, positions={ZERO: 2})) == {}
        assert f.assignment.state_value(ZERO).position == 2


@CHECKS.of("fetched records of another position are ignored")
async def other_position() -> None:
    async with Fetching() as f:
        f.change(ZERO, positions={ZERO: 0})
        found = fetched(f.assignment, 0)
        f.assignment.state_value(ZERO).seek(2)
        assert found.getall() == []


@CHECKS.of("fetched records of an assignment changed in place are returned")
async def handed_out() -> None:
    async with Fetching() as f:
        f.change(ZERO, positions={ZERO: 0})
        before = f.assignment
        records = await f.respond(lambda: f.change(ZERO, ONE))
        assert f.assignment is before
        assert records.keys() == {ZERO}
        f.change(ZERO)
        polled = await f.fetcher.fetched_records(set(), timeout=0)
        assert [record.offset for record in polled[ZERO]] == [0, 1, 2]


@CHECKS.of("each fetch reads the current wait")
async def wait_anew() -> None:
    async with Fetching() as f:
        f.change(ZERO, positions={ZERO: 0})
        waits = []
        for wait_ms in (25, 5):
            f.fetcher._fetch_max_wait_ms = wait_ms
            ((_, request),) = f.fetcher._get_actions_per_node(f.assignment)[0]
            waits.append(request.prepare({request.API_KEY: (4, 4)}).max_wait_time)
        assert waits == [25, 5]


@CHECKS.of("a recalled fetch is repeated at once")
async def called_back() -> None:
    async with Fetching() as f:

        async def recalled(*_: Any, **__: Any) -> Any:
            sent_at_s.append(asyncio.get_running_loop().time())
            if len(sent_at_s) == 1:
                raise asyncio.CancelledError
            return await asyncio.get_running_loop().create_future()

        sent_at_s: list[float] = []
        f.wire.send = recalled  # type: ignore[method-assign]
        f.change(ZERO, positions={ZERO: 0})
        routine = asyncio.ensure_future(f.fetcher._fetch_requests_routine())
        await take_turns()
        assert len(sent_at_s) == 2
        assert not routine.done()
        routine.cancel()


@CHECKS.of("a partition without a position begins at the committed offset")
async def begins_at_committed() -> None:
    async with Fetching() as f:
        f.change(ZERO)
        updating = asyncio.ensure_future(f.fetcher._update_fetch_positions(f.assignment, 0, [ZERO]))
        await asyncio.sleep(0)
        assert f.assignment.requesting_committed() == [ZERO]
        f.assignment.state_value(ZERO).update_committed(OffsetAndMetadata(33, ""))
        await asyncio.wait_for(updating, 1)
        assert f.assignment.state_value(ZERO).position == 33


@CHECKS.of("an offset out of range is reported and the position stays")
async def out_of_range() -> None:
    async with Fetching() as f:
        f.change(ZERO, positions={ZERO: 7})
        assert await f.respond(lambda: None, OffsetOutOfRangeError.errno) == {}
        assert f.out_of_range == [0]
        state = f.assignment.state_value(ZERO)
        assert (state.position, state.paused, state.awaiting_reset) == (7, True, False)


@CHECKS.of("a header may have any name")
async def any_name() -> None:
    raw = bytes(odd_batch(b"a", b"b", b"c").build())
    records = unpacked(raw)
    odd = ((r"\xff\xfe\xe4", b"1"),)
    assert [(one.value, one.headers) for one in records] == [(b"a", ()), (b"b", odd), (b"c", ())]
    limit_unpacking()
    assert fetcher.MemoryRecords is Records


def unpacked(raw: bytes, check_crcs: bool = True) -> list[Any]:
    return list(PartitionRecords(ZERO, Records(raw), None, 0, None, None, check_crcs, 0))


@CHECKS.of("what follows an unreadable record in its batch is replaced by one record at the last offset")
async def unreadable() -> None:
    raw = bytes(odd_batch(b"a", b"b").build())
    first, last = unpacked(raw.replace(b"b\x02\x06", b"b\x02\x7f"), check_crcs=False)
    assert (first.value, last.offset, last.value) == (b"a", 1, b"")
    assert "CorruptRecord" in last.value.reason


@CHECKS.of("a length beyond the batch is an error behind a header name that is no text, too")
async def beyond() -> None:
    raw = bytearray(odd_batch(b"a", b"b", bytes(20)).build())
    key = raw.rindex(b"\x06odd")
    raw[key : key + 7] = b"\xfe\xff\xff\xff\xff\xff\x0f"  # a key of 16 TB
    assert [one.value for one in unpacked(bytes(raw), check_crcs=False)] == [b"a", b"b", b""]


@CHECKS.of("a batch that unpacks to more than the limit is replaced by one record at its last offset")
async def too_large() -> None:
    limit_unpacking(0.1)
    v2 = [partial(DefaultRecordBatchBuilder, 2, codec, 0, -1, -1, -1) for codec in range(1, 5)]
    v1 = [partial(LegacyRecordBatchBuilder, 1, codec) for codec in range(1, 4)]  # its last offset is set by brokers
    for make, last in (*((make, 1) for make in v2), *((make, 0) for make in v1)):
        for size, offsets in ((40_000, [0, 1]), (60_000, [last])):
            builder = make(10**9)
            for offset in range(2):
                builder.append(offset, 5, b"key", bytes(size), [])
            records = unpacked(bytes(builder.build()))
            assert [one.offset for one in records] == offsets, make
            if size == 60_000:
                assert "0.1 MB" in records[0].value.reason, make
    limit_unpacking()


@CHECKS.of("a poll leaves packed what is beyond its limit, and fetches it again")
async def poll_is_limited() -> None:
    async with Fetching() as f:
        f.change(ZERO, ONE, positions={ZERO: 0, ONE: 0})
        for at in (ZERO, ONE):
            found = PartitionRecords(at, Records(batch() + batch()), None, 0, None, None, True, 0)
            f.fetcher._records[at] = FetchResult(at, assignment=f.assignment, partition_records=found, backoff=0.0)
        with poll_limit(1):
            polled = await f.fetcher.fetched_records(set(), timeout=0)
        assert list(polled) == [ZERO]
        assert not f.fetcher._records
        assert [f.assignment.state_value(at).position for at in (ZERO, ONE)] == [polled[ZERO][-1].offset + 1, 0]


@CHECKS.of("a poll hands over chunks of records from its position on, up to its limit, and the next poll continues")
async def chunks() -> None:
    limit_unpacking()
    async with Fetching() as f:
        BatchFetcher.adopt(f.consumer)
        f.fetcher.events_of = lambda topic, partition, records: records
        f.change(ZERO, positions={ZERO: 1})
        await f.respond(lambda: None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetching, "CHUNK_RECORDS", 2)
            polls = [await f.fetcher.fetched_records(set(), max_records=1) for _ in range(3)]
        assert [[one.offset for one in polled.get(ZERO, ())] for polled in polls] == [[1], [2], []]
        assert f.assignment.state_value(ZERO).position == 3


@CHECKS.of("an error of one partition is raised after the events of another were returned")
async def error_later() -> None:
    async with Fetching() as f:
        BatchFetcher.adopt(f.consumer)
        f.fetcher.events_of = lambda topic, partition, records: records
        f.change(ZERO, ONE, positions={ZERO: 0, ONE: 0})
        await f.respond(lambda: None)
        f.fetcher._set_error(ONE, OffsetOutOfRangeError())
        polled = await f.fetcher.fetched_records(set(), max_records=9)
        assert {at: [one.offset for one in events] for at, events in polled.items()} == {ZERO: [0, 1, 2]}
        with pytest.raises(OffsetOutOfRangeError):
            await f.fetcher.fetched_records(set(), max_records=9)


@pytest.mark.parametrize("name", CHECKS)
def test_aiokafka_behaves_as_the_consumer_relies_on(name):
    asyncio.run(CHECKS[name]())
