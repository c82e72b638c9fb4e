"""The checker finds each violation, and finds none in valid evidence."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from chaos_suite import checker
from chaos_suite.checker import Commit, Ended, Evidence, Members, Served

ORDERS = tuple(f"o{number}" for number in range(6))
DECLINED = "o5"


def served(number: int, replica: str = "payment-0", *, at_s: float | None = None, partition: int = 0) -> Served:
    return Served(
        order_id=f"o{number}",
        partition=partition,
        offset=number,
        replica=replica,
        done_s=100.0 + number if at_s is None else at_s,
        verdict=(f"p{number}", None, 0.5),
        accepted=f"o{number}" != DECLINED,
    )


def well() -> Evidence:
    """Six orders with all of their effects; one payment was declined, one was written twice after a crash."""
    return Evidence(
        settled=[*map(served, range(6)), replace(served(2), replica="payment-1", done_s=110.0)],
        shipped=[order for order in ORDERS if order != DECLINED],
        notified=list(ORDERS),
        refused=[],
        commits=[Commit("g.payment", "t", 0, offset) for offset in (1, 3, 3, 6)],
        members=[
            Members(90.0, 1, frozenset({"payment-0", "payment-1"}), "payment-0"),
            Members(104.0, 2, frozenset({"payment-1"}), "payment-1"),
        ],
        ends=[Ended(1, "payment-0", "killed by SIGKILL"), Ended(2, "payment-1", "exit status 0")],
    )


CHECKS: dict[str, Callable[[Evidence], list[str]]] = {
    "lost": lambda found: checker.lost(ORDERS, found),
    "doubled": checker.doubled,
    "order": lambda found: checker.out_of_order(found.settled, set()),
    "commits": lambda found: checker.regressed(found.commits),
    "killed": lambda found: checker.wrongly_killed(found.ends, {"payment-0"}),
    "failed": lambda found: checker.ended_by_itself(found.ends),
}


def broken(**changes: object) -> Evidence:
    return replace(well(), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CHECKS)
def test_valid_evidence_has_no_violation(name: str) -> None:
    assert not CHECKS[name](well())


UNPAID = [served(n) for n in range(6) if n != 3]
FEEDS: dict[str, tuple[str, Evidence, str]] = {
    "no payment": ("lost", broken(settled=UNPAID), "o3 was never requested, and has no payment"),
    "requested": ("lost", broken(settled=UNPAID, requested={"o3": (7, 12)}), "o3 at payments.requested/7/12 has no"),
    "not shipped": ("lost", broken(shipped=["o0", "o1", "o2", "o3"]), "o4 is paid and not shipped"),
    "not notified": ("lost", broken(notified=list(ORDERS[:5])), "order o5 has no message to its customer"),
    "refused": ("lost", broken(refused=["o1"]), "o1 was accepted, and refused later"),
    "two parcels": ("doubled", broken(shipped=[*well().shipped, "o2"]), "o2 was shipped 2 times"),
    "two messages": ("doubled", broken(notified=[*ORDERS, "o0"]), "2 messages about order o0"),
    "two verdicts": (
        "doubled",
        broken(settled=[*map(served, range(6)), replace(served(2), verdict=("p2", "too risky", 0.9))]),
        "o2 has 2 different payments",
    ),
    "declined and shipped": ("doubled", broken(shipped=[*ORDERS]), "o5 was declined and shipped"),
    "reordered by one": (
        "order",
        broken(settled=[served(0), served(2, at_s=101.0), served(1, at_s=102.0)]),
        "0/1 at payment-0 was served first after 0/2 at payment-0",
    ),
    "regressed": (
        "commits",
        broken(commits=[Commit("g.payment", "t", 0, offset) for offset in (1, 5, 4, 6)]),
        "g.payment committed 4 of t/0 after 5",
    ),
    "killed though well": (
        "killed",
        broken(ends=[Ended(1, "payment-1", "hung: its last report is 3600 s old")]),
        "payment-1 was killed, and was healthy (hung: its last report is 3600 s old)",
    ),
    "failed": ("failed", broken(ends=[Ended(7, "payment-1", "exit status 1; boom")]), "payment-1 failed at 7"),
}


@pytest.mark.parametrize("feed", FEEDS)
def test_one_fault_is_one_violation_of_its_kind_alone(feed: str) -> None:
    kind, evidence, sentence = FEEDS[feed]
    violations = {name: check(evidence) for name, check in CHECKS.items()}
    assert [one for one in violations[kind] if sentence in one] == violations[kind]
    assert len(violations[kind]) == 1
    if kind in ("order", "lost"):  # a feed cut short lacks effects, too
        return
    assert not [one for name, each in violations.items() if name != kind for one in each]


def test_a_later_owner_may_seem_late_where_the_first_one_was_killed() -> None:
    settled = [served(0), served(2, "payment-0", at_s=101.0), served(1, "payment-1", at_s=102.0)]
    assert not checker.out_of_order(settled, {"payment-0"})
    assert checker.out_of_order(settled, set())


def test_a_commit_that_a_broken_broker_may_not_have_answered_may_be_overtaken() -> None:
    commits = [Commit("g", "t", 0, 104, at_s=50.0), Commit("g", "t", 0, 103, at_s=52.0)]
    assert not checker.regressed(commits, [(49.0, 55.0)])
    assert checker.regressed(commits, [(10.0, 49.0)])
    assert checker.regressed(commits)


def test_a_member_is_lost_where_its_id_is_gone_and_not_where_it_goes_on() -> None:
    members = [
        Members(at_s, 1, frozenset({"payment-0"}), "", ids=frozenset({one}))
        for at_s, one in ((1.0, "a"), (5.0, "a"), (9.0, "b"))
    ]
    assert checker.losses(members, 4.0) == [(5.0, 9.0)]


MEMBERS = [
    Members(90.0, 1, frozenset({"payment-0", "payment-1"})),
    Members(104.0, 2, frozenset({"payment-1"})),
    Members(120.0, 3, frozenset({"payment-0", "payment-1"})),
]


def test_what_was_served_in_the_group_or_had_been_begun_in_it_is_right() -> None:
    inside = [served(n) for n in range(5)]
    in_flight = replace(served(5), done_s=112.0)
    back = [replace(served(6), done_s=121.0), replace(served(7), done_s=122.0)]
    other = [replace(served(n, "payment-1"), done_s=100.0 + n) for n in range(8, 18)]
    assert not checker.zombies([*inside, in_flight, *back, *other], MEMBERS)


def test_what_was_begun_after_the_group_had_dropped_the_replica_is_a_zombies_work() -> None:
    frozen_until = [replace(served(n), done_s=112.0 + n / 100) for n in range(3)]
    assert checker.zombies(frozen_until, MEMBERS) == [
        "payment-0 served 0/1 8.0 s after the group dropped it",
        "payment-0 served 0/2 8.0 s after the group dropped it",
    ]
