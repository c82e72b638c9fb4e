"""Input is acknowledged in the order of its offsets, whatever the order in which outputs are confirmed."""

from hypothesis import given
from hypothesis import strategies as st

from services.common.acknowledgements import Acknowledgements


def test_a_later_record_waits_for_an_earlier_one() -> None:
    acknowledged: list[int] = []
    open_slots = Acknowledgements()
    first, second = (open_slots.open("p0", lambda offset=offset: acknowledged.append(offset)) for offset in (0, 1))
    second.confirm()
    assert acknowledged == []
    first.confirm()
    assert acknowledged == [0, 1]


def test_a_record_waits_for_all_it_caused() -> None:
    acknowledged: list[str] = []
    slot = Acknowledgements().open("p0", lambda: acknowledged.append("record"))
    slot.expect()
    slot.confirm()
    assert acknowledged == []
    slot.confirm()
    assert acknowledged == ["record"]


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


def test_the_age_is_that_of_the_oldest_open_record() -> None:
    now_s = 100.0
    open_slots = Acknowledgements(clock=lambda: now_s)
    assert open_slots.oldest_s() == 0.0
    first = open_slots.open("p0", lambda: None)
    now_s = 103.0
    open_slots.open("p1", lambda: None)
    assert open_slots.oldest_s() == 3.0
    first.confirm()
    assert open_slots.oldest_s() == 0.0


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
