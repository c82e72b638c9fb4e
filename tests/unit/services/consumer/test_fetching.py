"""Fetched batches become events, each of them once."""

import pytest
from aiokafka.structs import TopicPartition
from odd_headers import odd_batch

from contracts.unpacking import Records, limit_unpacking
from services.consumer import fetching
from services.consumer.fetching import _ChunkedRecords, _PartitionChunks


@pytest.mark.parametrize(("chunk_records", "begin"), [(200, 0), (200, 2), (3, 0), (3, 2), (1, 0)])
def test_a_header_name_that_is_no_text_repeats_no_event(chunk_records, begin, monkeypatch):
    monkeypatch.setattr(fetching, "CHUNK_RECORDS", chunk_records)
    limit_unpacking(16)
    values = [str(number).encode() for number in range(9)]
    raw = bytes(odd_batch(*values).build())
    records = _PartitionChunks(TopicPartition("events", 0), Records(raw), [], begin, None, None, True, 0)
    records._records.__class__ = _ChunkedRecords
    records.events_of = lambda _topic, _partition, some: [(one.offset, one.value) for one in some]
    events = [event for chunk in records for event in chunk]
    assert events == [*enumerate(values)][begin:]
    assert records.next_fetch_offset == 9
