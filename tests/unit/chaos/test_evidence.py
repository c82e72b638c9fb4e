"""Schedules follow from their seed; Kafka's group records are read by their bytes; results add up under fixed keys."""

import struct
from concurrent.futures import Future

import pytest
from chaos_suite.evidence import Bytes, members, true_s
from chaos_suite.faults import LONG_S, LONGEST_S, ON_BROKERS, Kind, Variant, schedule
from chaos_suite.inject import answer
from chaos_suite.suite import Schedule, outcome

from contracts.waiting import WaitTimeoutError


def test_schedules_draw_every_kind_and_disturb_one_broker_at_most() -> None:
    schedules = [schedule(seed) for seed in range(500)]
    assert schedules == [schedule(seed) for seed in range(500)]
    assert {fault.kind for faults in schedules for fault in faults} == set(Kind)
    assert all(fault.lasts_s <= LONGEST_S for faults in schedules for fault in faults)
    for faults in schedules:
        for family in (ON_BROKERS, (Kind.DELETED,), (Kind.CLOCK,), (Kind.RIVAL,)):
            assert sum(fault.kind in family for fault in faults) <= 1


def test_a_variant_draws_long_faults_or_hostile_records() -> None:
    for seed in range(200):
        faults = schedule(seed, variant=Variant.LONG)
        assert all(LONG_S[0] <= fault.lasts_s <= LONG_S[1] for fault in faults)
        assert sum(fault.kind in ON_BROKERS for fault in faults) <= 1
        assert sum(fault.kind is Kind.HOSTILE for fault in schedule(seed, variant=Variant.HOSTILE)) == 1


def test_an_unsupported_kind_is_left_out_of_the_same_schedule() -> None:
    for seed in range(100):
        rest = tuple(one for one in schedule(seed) if one.kind is not Kind.DISK)
        assert schedule(seed, frozenset({Kind.DISK})) == rest


def test_a_fault_whose_admin_client_dies_names_its_request() -> None:
    pending = Future[None]()
    pending.cancel()
    with pytest.raises(WaitTimeoutError, match="add a partition"):
        answer(pending, "add a partition")


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def group(*names: tuple[str, str], leader: str, version: int = 3) -> bytes:
    head = struct.pack(">h", version) + text("consumer") + struct.pack(">i", 7) + text("plan") + text(leader)
    each = b"".join(
        text(member) + struct.pack(">h", -1) + text(client) + text("/127.0.0.1") + struct.pack(">ii", 10_000, 2000)
        + blob(b"subscribed") + blob(b"")
        for member, client in names
    )  # fmt: skip
    return head + struct.pack(">q", 1) + struct.pack(">i", len(names)) + each


def test_a_group_record_yields_names_and_leader_and_another_version_is_refused() -> None:
    found = members(Bytes(group(("a-id", "payment-0"), ("b-id", "payment-1"), leader="b-id")), 12.5)
    assert (found.at_s, found.generation, found.leader) == (12.5, 7, "payment-1")
    assert (found.names, found.ids) == ({"payment-0", "payment-1"}, {"a-id", "b-id"})
    with pytest.raises(RuntimeError, match="version 4"):
        members(Bytes(group(leader="", version=4)), 1.0)


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_stamp_loses_the_whole_hours_of_a_stepped_clock(hours: int) -> None:
    now_s = 1_700_000_000.0
    assert true_s(int((now_s - 42.5 + 3600 * hours) * 1e6), now_s) == pytest.approx(now_s - 42.5)


def test_results_add_up_under_the_keys_that_programs_read() -> None:
    fine = Schedule(seed=1, faults=("a", "b"), events=100, recovery_s=2.5)
    wrong = Schedule(seed=2, faults=("c",), events=50, recovery_s=4.0, lost=["x", "y"], zombie_events=["z"])
    found = outcome([fine, wrong], ())
    figures = {"schedules": 2, "faults": 3, "events": 150, "lost": 2, "duplicated": 0, "order_violations": 0}
    figures |= {"offset_regressions": 0, "zombie_events": 1, "wrongly_killed": 0, "violations": 3}
    assert found.items() >= (figures | {"worst_recovery_s": 4.0}).items()
    assert [one["seed"] for one in found["failed"]] == [2]
    without_effect = outcome([fine, Schedule(seed=3, faults=("a",), not_done=("a: the broker answers",))], ())
    assert (without_effect["schedules"], without_effect["faults"], len(without_effect["not_counted"])) == (1, 2, 1)
