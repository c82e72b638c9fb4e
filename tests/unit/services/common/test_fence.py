"""The output of a zombie has no effect after the new owner's was seen. Unserved events are never refused."""

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
    """Return for each (offset, generation), read in this order, whether it is admitted."""
    fence = fence or Fence()
    return [fence.admits(0, served(*each)) for each in records]


def test_an_event_that_the_new_owner_served_is_refused_from_the_old_owner() -> None:
    assert story((100, 4), (101, 4), (100, 6), (102, 6), (101, 4), (102, 4)) == [True] * 4 + [False] * 2


def test_an_event_before_the_new_owners_first_offset_is_always_admitted() -> None:
    assert story((100, 6), (104, 6), (98, 4), (99, 4)) == [True] * 4


def test_an_event_beyond_the_new_owners_last_offset_is_admitted() -> None:
    assert story((100, 6), (101, 4)) == [True, True]


def test_each_partition_and_each_input_partition_is_judged_separately() -> None:
    fence = Fence()
    story((100, 6), (110, 6), fence=fence)
    assert fence.admits(0, served(105, 4, partition=6))
    assert fence.admits(1, served(105, 4)), "the newer owner's record has not been read from this partition"
    assert not fence.admits(0, served(105, 4))


def test_a_group_whose_generations_start_again_continues_beyond_the_offsets_seen_before() -> None:
    fence = Fence()
    story((100, 57), (110, 57), fence=fence)
    assert story((0, 1), (50, 1), (105, 1), (111, 1), (112, 2), (500, 2), fence=fence) == [
        True, True, False, True, True, True,
    ]  # fmt: skip
    assert fence.admits(0, served(105, 1, epoch=4)), "with a newer plan the token is not older"


def test_an_owner_with_an_older_plan_but_a_newer_generation_is_no_zombie() -> None:
    fence = Fence()
    assert fence.admits(0, served(100, 8, epoch=7))
    assert fence.admits(0, served(110, 8, epoch=7))
    assert fence.admits(0, served(100, 9, epoch=6))
    assert fence.admits(0, served(105, 9, epoch=6))


def test_a_record_without_a_token_is_admitted_and_not_remembered() -> None:
    fence = Fence()
    assert fence.admits(0, served(100, None))
    assert fence.admits(0, Timeline(intended_us=0, placed_us=0))
    assert fence.refused == 0


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(1, 3)), max_size=60))
def test_a_refused_event_lies_between_offsets_of_one_newer_owner(records: list[tuple[int, int, int]]) -> None:
    fence, seen = Fence(), []
    for offset, generation, epoch in records:
        if fence.admits(0, served(offset, generation, epoch=epoch)):
            seen.append((offset, generation))
        else:
            newer = {g: [o for o, of in seen if of == g] for _, g in seen if g > generation}
            assert any(min(offsets) <= offset <= max(offsets) for offsets in newer.values())


def test_memory_is_bounded_and_keeps_the_latest_owner() -> None:
    fence = Fence(spans=2, places=3)
    for generation in range(1, 50):
        story((100, generation), (200, generation), fence=fence)
    for partition in range(10, 40):
        fence.admits(0, served(1, 1, partition=partition))
    assert len(fence._spans) == 3
    assert max(map(len, fence._spans.values())) <= 2
    story((100, 51), (200, 51), fence=fence)
    assert story((150, 50), fence=fence) == [False]


def test_all_refusals_are_counted_but_only_some_are_logged(caplog) -> None:
    fence = Fence()
    story((100, 6), (200, 6), fence=fence)
    with caplog.at_level(logging.WARNING):
        for _ in range(REFUSALS_PER_LOG_LINE):
            story((150, 5), fence=fence)
    assert fence.refused == REFUSALS_PER_LOG_LINE
    (message,) = caplog.messages
    assert all(part in message for part in ("me", "offset 150", "partition 5", "generation 5"))


def test_a_fenced_stage_decides_admitted_payments_and_refuses_other_records() -> None:
    decide = fenced_decision(Fence(), lambda payment: [Effect(payment.order_id, "t", None, None)])

    def read(value: bytes) -> list[object]:
        return list(decide(Incoming("settled", 0, 0, 0, None, value, {})))

    def payment(offset: int, generation: int) -> bytes:
        return msgspec.json.encode(msgspec.structs.replace(PAYMENT, timeline=served(offset, generation)))

    assert len(read(payment(1, 2)) + read(payment(9, 2))) == 2
    assert read(payment(5, 1)) == []
    assert isinstance(read(b"[]")[0], Refusal)


def test_after_a_restart_the_fence_is_restored_from_the_stages_own_output() -> None:
    shipment = ShipmentScheduled(
        shipment_id="s", order_id="o", payment_id="p", customer="c", country="DE", parcel="S", carrier="DHL",
        promised_on="2024-01-04", timeline=served(100, 6),
    )  # fmt: skip
    notified = NotificationSent(
        notification_id="n", order_id="o", payment_id="p", shipment_id=None, customer="c", accepted=False, text="",
        timeline=served(110, 6),
    )  # fmt: skip
    fence = Fence()
    fence.remember(2, msgspec.json.encode(shipment))
    fence.remember(2, msgspec.json.encode(msgspec.structs.replace(notified, accepted=True, timeline=served(300, 6))))
    assert fence.admits(2, served(105, 4))
    fence.remember(2, msgspec.json.encode(notified))
    assert not fence.admits(2, served(105, 4))
    assert fence.admits(2, served(200, 4)), "a notification about a shipment proves nothing about payments read"
    assert fence.refused == 1
