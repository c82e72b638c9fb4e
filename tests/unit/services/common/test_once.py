"""Effects happen once: records are acknowledged in order, and the latest ids of effects are remembered."""

from hypothesis import given
from hypothesis import strategies as st

from services.common.stage import Acknowledgements, RecentIds


def test_partitions_do_not_wait_for_each_other() -> None:
    acknowledged: list[str] = []
    open_slots = Acknowledgements()
    open_slots.open("p0", lambda: acknowledged.append("p0"))
    open_slots.open("p1", lambda: acknowledged.append("p1")).confirm()
    assert acknowledged == ["p1"]


def test_a_record_of_a_revoked_partition_is_never_acknowledged() -> None:
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
def test_acknowledged_records_are_always_a_prefix(confirmed_in_order: list[int], how_many: int) -> None:
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
def test_recent_ids_are_exactly_the_last_distinct_ids(ids: list[str], retention: int) -> None:
    recent_ids = RecentIds(retention)
    for identity in ids:
        recent_ids.add(identity)
    newest_first = list(dict.fromkeys(reversed(ids)))
    assert len(recent_ids) == min(retention, len(newest_first))
    assert all((identity in recent_ids) == (rank < retention) for rank, identity in enumerate(newest_first))


@given(st.lists(st.sampled_from(["take", "commit", "start", "again"]), max_size=60), st.integers(1, 4))
def test_no_effect_happens_twice_although_memory_is_bounded(steps: list[str], limit: int) -> None:
    """Commits of a partition lag, and the stage may restart and read back its output."""
    written: list[str] = []
    recent_ids, offset, committed = RecentIds(limit), 0, 0
    for step in steps:
        if step == "commit":
            committed = offset
        elif step in {"start", "again"}:
            offset = committed
            if step == "start":  # a new process reads back as many ids as can be repeated
                recent_ids = RecentIds(limit)
                recent_ids.update(written[-limit:])
        elif offset - committed < limit:
            if str(offset) not in recent_ids:
                written.append(str(offset))
            recent_ids.add(str(offset))
            offset += 1
        assert offset - committed <= limit
    assert len(written) == len(set(written))
