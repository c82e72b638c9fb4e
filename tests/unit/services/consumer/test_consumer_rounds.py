"""One round, decided by the leader: who keeps, who waits, who gets, and where to go on."""

import pytest

from contracts.plan import Eviction, PlanRecord
from contracts.progress import RoundKind
from services.consumer.rounds import MOST_FOLLOW_UPS, Given, Introduction, Origin, Share, decide, last_owners

GENERATION = 8


def plan(epoch: int, assignment: dict[int, str] | None, *, dead: str = "") -> PlanRecord:
    evictions = (Eviction(replica=dead, member_id=f"{dead}-id", incarnation="1"),) if dead else ()
    replicas = tuple(sorted(set((assignment or {}).values())))
    return PlanRecord(
        epoch=epoch, at_us=0, replicas=replicas, assignment=assignment, reason="", evictions=evictions
    )  # fmt: skip


def member(name: str, *owned: int, epoch: int = 1, generation: int = GENERATION - 1, **more) -> Introduction:
    return Introduction(name=name, owned=owned, epoch=epoch, generation=generation, **more)


def partitions_of(shares: dict[str, Share]) -> dict[str, tuple[int, ...]]:
    return {member_id: share.partitions for member_id, share in shares.items()}


def test_what_moves_is_withheld_for_one_round_and_the_rest_is_kept():
    group = {"A": member("a", 0, 1), "B": member("b", 2)}

    shares = decide(plan(2, {0: "a", 1: "b", 2: "b"}), group, [0, 1, 2], GENERATION)

    assert partitions_of(shares) == {"A": (0,), "B": (2,)}
    assert all(share.origin.again for share in shares.values()), "everybody rejoins, so that nobody waits"


def test_what_was_given_up_is_granted_with_its_offset():
    group = {
        "A": member("a", 0, epoch=2, given={1: Given(40, 7)}, follows=RoundKind.PLAN),
        "B": member("b", 2, epoch=2, follows=RoundKind.PLAN),
    }

    shares = decide(plan(2, {0: "a", 1: "b", 2: "b"}), group, [0, 1, 2], GENERATION)

    assert partitions_of(shares) == {"A": (0,), "B": (1, 2)}
    assert shares["B"].origin == Origin(
        epoch=2, kind=RoundKind.PLAN, members=2, moved=1, given={1: Given(40, 7)}, again=False, follow_ups=0
    )
    assert shares["A"].origin.given == {}, "offsets go to the new owner alone"


@pytest.mark.parametrize("generation", [GENERATION - 2, GENERATION, -1])
def test_an_offset_from_another_generation_is_not_passed_on(generation):
    """Somebody may have owned the partition in the generation that its giver missed."""
    group = {"A": member("a", generation=generation, given={0: Given(40, 7)}), "B": member("b")}

    shares = decide(plan(2, {0: "b"}), group, [0], GENERATION)

    assert partitions_of(shares) == {"A": (), "B": (0,)}
    assert shares["B"].origin.given == {}


def test_a_plan_that_changes_back_returns_a_claimed_partition_to_its_owner():
    group = {"A": member("a", 0, 1, epoch=2), "B": member("b", epoch=2)}

    shares = decide(plan(3, {0: "a", 1: "a"}), group, [0, 1], GENERATION)

    assert partitions_of(shares) == {"A": (0, 1), "B": ()}
    assert not shares["A"].origin.again


def test_rounds_that_only_wait_for_a_slow_owner_end_at_the_cap():
    group = {"A": member("a", 0, epoch=2, follows=RoundKind.PLAN, follow_ups=MOST_FOLLOW_UPS), "B": member("b")}

    shares = decide(plan(2, {0: "b"}), group, [0], GENERATION)

    assert not shares["A"].origin.again
    assert partitions_of(shares) == {"A": (), "B": ()}, "withheld all the same"


def test_a_new_plan_begins_counting_anew():
    tired = member("a", 0, epoch=2, follows=RoundKind.PLAN, follow_ups=MOST_FOLLOW_UPS)

    shares = decide(plan(3, {0: "b"}), {"A": tired, "B": member("b", epoch=2)}, [0], GENERATION)

    assert shares["A"].origin.again
    assert shares["A"].origin.follow_ups == 0


@pytest.mark.parametrize(
    ("newest", "follows", "kind"),
    [
        (plan(2, {0: "a"}), None, RoundKind.PLAN),
        (plan(2, {0: "a"}, dead="b"), None, RoundKind.DEATH),
        (plan(1, {0: "a"}, dead="b"), None, RoundKind.MEMBERSHIP),
        (plan(1, {0: "a"}), RoundKind.DEATH, RoundKind.DEATH),
        (None, None, RoundKind.MEMBERSHIP),
    ],
)
def test_a_round_says_why_it_is(newest, follows, kind):
    shares = decide(newest, {"A": member("a", 0, follows=follows)}, [0], GENERATION)

    assert shares["A"].origin.kind is kind


def test_an_older_claim_never_beats_a_newer_one():
    zombie, owner = member("a", 0, 1, generation=4), member("b", 1, generation=6)

    assert last_owners({"A": zombie, "B": owner}) == {0: "A", 1: "B"}
