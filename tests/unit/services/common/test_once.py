"""Effects happen once: acknowledged in the order of the offsets, and known by ids of which the oldest are forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from services.common.stage import Acknowledgements, RecentIds, UncommittedOffsets


def test_partitions_do_not_wait_for_each_other() -> None:
    acknowledged: list[str] = []
    open_slots = Acknowledgements()
    open_slots.open("p0", lambda: acknowledged.append("p0"))
    open_slots.open("p1", lambda: acknowledged.append("p1")).confirm()
    assert acknowledged == ["p1"]


def test_a_partition_given_up_is_never_acknowledged_by_what_was_open() -> None:
    acknowledged: list[str] = []
    open_slots = Acknowledgements()
    before = open_slots.open("p0", lambda: acknowledged.append("before"))
    open_slots.forget()
    after = open_slots.open("p0", lambda: acknowledged.append("after"))
    before.confirm()
    assert acknowledged == []
    after.confirm()
    assert acknowledged == ["after"]


@given(st.permutations(range(12)), st.integers(0, 12))
def test_what_is_acknowledged_is_always_a_prefix(confirmed_in_order: list[int], how_many: int) -> None:
    acknowledged: list[int] = []
    open_slots = Acknowledgements()
    slots = [open_slots.open("p0", lambda offset=offset: acknowledged.append(offset)) for offset in range(12)]
    confirmed = confirmed_in_order[:how_many]
    for offset in confirmed:
        slots[offset].confirm()
    prefix = next((offset for offset in range(12) if offset not in confirmed), 12)
    assert acknowledged == list(range(prefix))
    assert open_slots.count == 12 - prefix


@given(st.lists(st.text("abcdef", min_size=1, max_size=2)), st.integers(1, 8))
def test_it_holds_exactly_the_last_distinct_ids(ids: list[str], retention: int) -> None:
    seen = RecentIds(retention)
    for identity in ids:
        seen.add(identity)
    newest_first = list(dict.fromkeys(reversed(ids)))
    assert len(seen) == min(retention, len(newest_first))
    assert all((identity in seen) == (rank < retention) for rank, identity in enumerate(newest_first))


@given(st.lists(st.sampled_from(["take", "commit", "start", "again"]), max_size=60), st.integers(1, 4))
def test_nothing_that_can_be_read_again_is_forgotten(story: list[str], most: int) -> None:
    """A partition whose commits lag, and a stage that may start anew with what it reads back. Nothing is done twice."""
    written: list[str] = []
    seen, span, offset, committed = RecentIds(most), UncommittedOffsets(most), 0, 0
    for step in story:
        if step == "commit":
            committed = offset
        elif step in {"start", "again"}:
            span, offset = UncommittedOffsets(most), committed
            if step == "start":  # another process: it knows what it reads back, as many as can come again
                seen = RecentIds(most)
                seen.update(written[-most:])
        elif span.may_take("p0", offset, committed):
            if str(offset) not in seen:
                written.append(str(offset))
            seen.add(str(offset))
            offset += 1
        assert offset - committed <= most
    assert len(written) == len(set(written))
