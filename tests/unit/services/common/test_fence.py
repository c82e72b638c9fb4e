"""A zombie's output has no effect once the new owner's was seen; nothing that was not seen is ever refused."""

import logging

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import NotificationSent, PaymentSettled, ShipmentScheduled, Timeline
from services.common.fence import REFUSALS_PER_LOG_LINE, Fence, fenced_decision
from services.common.records import Effect, Incoming, Refusal

PAYMENT = PaymentSettled(
    payment_id="p-1", order_id="o-1", customer="ada", merchant="books", country="DE", currency="EUR",
    amount_minor=1250, accepted=True, decline_reason=None, risk_score=0.1,
    timeline=Timeline(intended_us=0, placed_us=0),
)  # fmt: skip


def served(offset: int, generation: int | None, *, epoch: int | None = 3, partition: int = 5) -> Timeline:
    return Timeline(
        intended_us=0, placed_us=0, partition=partition, offset=offset, generation=generation, epoch=epoch, replica="me"
    )


def story(*records: tuple[int, int], fence: Fence | None = None) -> list[bool]:
    """Return what is admitted of (offset, generation), read in this order."""
    fence = fence or Fence()
    return [fence.admits(0, served(*each)) for each in records]


def test_what_the_new_owner_has_served_too_is_refused_of_the_old_one() -> None:
    assert story((100, 4), (101, 4), (100, 6), (102, 6), (101, 4), (102, 4)) == [True] * 4 + [False] * 2


def test_what_the_old_owner_had_committed_before_the_new_one_began_is_admitted_whenever_it_is_read() -> None:
    assert story((100, 6), (104, 6), (98, 4), (99, 4)) == [True] * 4


def test_ahead_of_the_new_owner_nothing_is_refused_for_it_may_still_be_the_only_one() -> None:
    assert story((100, 6), (101, 4)) == [True, True]


def test_a_partition_says_nothing_about_another_and_one_read_elsewhere_nothing_here() -> None:
    fence = Fence()
    story((100, 6), (110, 6), fence=fence)
    assert fence.admits(0, served(105, 4, partition=6))
    assert fence.admits(1, served(105, 4)), "in this partition the newer owner's record is still to come"
    assert not fence.admits(0, served(105, 4))


def test_a_group_that_counts_from_one_again_goes_on_past_what_was_seen_of_the_one_before() -> None:
    fence = Fence()
    story((100, 57), (110, 57), fence=fence)
    assert story((0, 1), (50, 1), (105, 1), (111, 1), (112, 2), (500, 2), fence=fence) == [
        True, True, False, True, True, True,
    ]  # fmt: skip
    assert fence.admits(0, served(105, 1, epoch=4)), "under a newer plan it is no older token"


def test_a_leader_that_placed_by_an_older_plan_makes_no_owner_a_zombie() -> None:
    fence = Fence()
    assert fence.admits(0, served(100, 8, epoch=7))
    assert fence.admits(0, served(110, 8, epoch=7))
    assert fence.admits(0, served(100, 9, epoch=6))
    assert fence.admits(0, served(105, 9, epoch=6))


def test_a_record_without_a_token_is_neither_refused_nor_remembered() -> None:
    fence = Fence()
    assert fence.admits(0, served(100, None))
    assert fence.admits(0, Timeline(intended_us=0, placed_us=0))
    assert fence.refused == 0


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(1, 3)), max_size=60))
def test_what_is_refused_was_seen_around_by_one_newer_owner(records: list[tuple[int, int, int]]) -> None:
    fence, seen = Fence(), []
    for offset, generation, epoch in records:
        if fence.admits(0, served(offset, generation, epoch=epoch)):
            seen.append((offset, generation))
        else:
            newer = {g: [o for o, of in seen if of == g] for _, g in seen if g > generation}
            assert any(min(offsets) <= offset <= max(offsets) for offsets in newer.values())


def test_memory_is_bounded_and_the_owner_seen_last_is_remembered() -> None:
    fence = Fence(spans=2, places=3)
    for generation in range(1, 50):
        story((100, generation), (200, generation), fence=fence)
    for partition in range(10, 40):
        fence.admits(0, served(1, 1, partition=partition))
    assert len(fence._spans) == 3
    assert max(map(len, fence._spans.values())) <= 2
    story((100, 51), (200, 51), fence=fence)
    assert story((150, 50), fence=fence) == [False]


def test_refusals_are_counted_and_said_but_not_each(caplog) -> None:
    fence = Fence()
    story((100, 6), (200, 6), fence=fence)
    with caplog.at_level(logging.WARNING):
        for _ in range(REFUSALS_PER_LOG_LINE):
            story((150, 5), fence=fence)
    assert fence.refused == REFUSALS_PER_LOG_LINE
    assert caplog.messages == [
        "Refused output of me for offset 150 of partition 5, generation 5: a later owner has served it"
    ]


def test_a_stage_decides_what_is_admitted_and_refuses_what_is_no_payment() -> None:
    decide = fenced_decision(Fence(), lambda payment: [Effect(payment.order_id, "t", None, None)])

    def read(value: bytes) -> list[object]:
        return list(decide(Incoming("settled", 0, 0, 0, None, value, {})))

    def payment(offset: int, generation: int) -> bytes:
        return msgspec.json.encode(msgspec.structs.replace(PAYMENT, timeline=served(offset, generation)))

    assert len(read(payment(1, 2)) + read(payment(9, 2))) == 2
    assert read(payment(5, 1)) == []
    assert isinstance(read(b"[]")[0], Refusal)


def test_after_a_restart_the_stages_own_output_tells_what_it_had_seen() -> None:
    shipment = ShipmentScheduled(
        shipment_id="s", order_id="o", payment_id="p", customer="c", country="DE", parcel="S", carrier="DHL",
        promised_on="2024-01-04", timeline=served(100, 6),
    )  # fmt: skip
    told = NotificationSent(
        notification_id="n", order_id="o", payment_id="p", shipment_id=None, customer="c", accepted=False, text="",
        timeline=served(110, 6),
    )  # fmt: skip
    fence = Fence()
    fence.remember(2, msgspec.json.encode(shipment))
    fence.remember(2, msgspec.json.encode(msgspec.structs.replace(told, accepted=True, timeline=served(300, 6))))
    assert fence.admits(2, served(105, 4))
    fence.remember(2, msgspec.json.encode(told))
    assert not fence.admits(2, served(105, 4))
    assert fence.admits(2, served(200, 4)), "that it was told of a shipment shows nothing of what was read of payments"
    assert fence.refused == 1
