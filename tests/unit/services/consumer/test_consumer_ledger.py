"""Only what is acknowledged, and everything before it, may be committed."""

from hypothesis import given
from hypothesis import strategies as st

from services.consumer.ledger import Ledger


def test_an_acknowledgement_that_overtakes_another_waits_for_it():
    ledger = Ledger()
    for offset in (4, 5, 6):
        ledger.served(0, offset)

    ledger.acknowledged(0, 5)
    assert ledger.committable() == {}

    ledger.acknowledged(0, 4)
    assert ledger.committable() == {0: 6}
    assert ledger.unacknowledged == 1


def test_what_is_committed_is_not_committed_again():
    ledger = Ledger()
    ledger.served(0, 1)
    ledger.acknowledged(0, 1)
    ledger.committed(ledger.committable())

    assert ledger.committable() == {}


def test_partitions_do_not_wait_for_each_other():
    ledger = Ledger()
    ledger.served(0, 10)
    ledger.served(1, 3)
    ledger.acknowledged(1, 3)

    assert ledger.committable() == {1: 4}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30), st.randoms())
def test_the_committable_offset_never_passes_an_unacknowledged_event_and_ends_behind_the_last(steps, random):
    offsets = [sum(steps[: count + 1]) for count in range(len(steps))]  # with gaps, as compaction and markers leave
    ledger = Ledger()
    for offset in offsets:
        ledger.served(0, offset)
    waiting, order = set(offsets), list(offsets)
    random.shuffle(order)

    for offset in order:
        ledger.acknowledged(0, offset)
        waiting.discard(offset)
        at = ledger.committable().get(0, 0)
        assert all(offset >= at for offset in waiting)

    assert ledger.committable() == {0: offsets[-1] + 1}
    assert ledger.unacknowledged == 0
