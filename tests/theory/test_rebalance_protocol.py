"""The rebalance protocol, explored exhaustively, with the leader that really decides.

In every reachable state: no two members have the same partition, committed offsets never go back, no event is skipped,
none is served twice without a fault; and from every state the group comes to rest with every partition served as the
newest plan says. Each scenario's size is printed (-s); the large ones are in exhaustive/.
"""

import gc

import pytest
from theory.rebalance import broker, member, serving
from theory.rebalance.explore import explore
from theory.rebalance.scenarios import group
from theory.rebalance.serving import BrokenError
from theory.rebalance.state import Group, Phase, State

from services.consumer import rounds


@pytest.fixture(autouse=True)
def _small_and_quick(monkeypatch):
    """Follow-ups are capped early, so that what comes after the cap is explored too; nothing here makes garbage."""
    monkeypatch.setattr(rounds, "MOST_FOLLOW_UPS", 1)
    gc.disable()
    yield
    gc.enable()


SCENARIOS = {
    "two swap their partitions, one crash or lost session": group(2, "ab", "ba", faults=1),
    "two swap, events in flight are slow, answers get lost": group(2, "ab", "ba", mishaps=2),
    "three pass their partitions on, plans arrive early and late": group(3, "abc", "bca", events=1),
    "two plans at once": group(2, "ab", "ba", "bb", events=1, mishaps=1),
    "a new replica starts and takes one": group(3, "ab", "cb", started=2, events=1),
    "the plan names a replica that never comes": group(2, "aab", "cab", events=1, faults=1),
    "one drains": group(2, "ab", "ab", events=1, may_drain=0b01, mishaps=1),
    "the plan leaves the placement to the group": group(2, "aaab", None, events=1, mishaps=1),
    "eager: two swap, one crash or lost session": group(2, "ab", "ba", faults=1, mishaps=1, eager=True),
    "eager: three pass their partitions on": group(3, "abc", "bca", eager=True),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_partition_has_two_owners_and_none_is_forgotten(name):
    found = explore(SCENARIOS[name])

    print(f"{name}: {len(found.states)} states, {found.steps} steps")  # noqa: T201  # shown by pytest -s
    assert len(found.states) > 500, "a scenario in which nothing happens proves nothing"


def test_follow_ups_that_are_capped_at_once_forget_nothing(monkeypatch):
    monkeypatch.setattr(rounds, "MOST_FOLLOW_UPS", 0)

    explore(group(2, "ab", "ba", events=1, mishaps=2))


# The model can fail: each of these breaks one rule, and the exploration tells how it ends.


def test_a_leader_that_grants_what_is_still_claimed_makes_two_owners(monkeypatch):
    monkeypatch.setattr(rounds, "last_owners", lambda introductions: {})

    with pytest.raises(BrokenError, match="two members have the same partition"):
        explore(group(2, "ab", "ba"))


def test_an_offset_given_up_before_the_last_generation_is_stale(monkeypatch):
    def offsets_of_any_age(introductions, generation):
        return {p: at for each in introductions.values() for p, at in each.given.items()}

    monkeypatch.setattr(rounds, "_offsets", offsets_of_any_age)

    with pytest.raises(BrokenError, match="before the committed offset"):
        explore(group(2, "ab", "ba", faults=1))


def test_a_member_that_keeps_its_claims_after_a_loss_makes_two_owners(monkeypatch):
    def keep_all(state: State, me: int) -> State:
        return broker.put(state, me, state.nodes[me]._replace(phase=Phase.OUT, mail=None))

    monkeypatch.setattr(serving, "lose", keep_all)

    with pytest.raises(BrokenError, match="two members have the same partition"):
        explore(group(2, "ab", "ba", faults=1))


def test_a_broker_that_fenced_nobody_would_let_committed_offsets_go_back(monkeypatch):
    monkeypatch.setattr(broker, "accepts", lambda state, me: True)

    with pytest.raises(BrokenError, match="committed offset goes back"):
        explore(group(2, "ab", "ba", faults=1))


def test_an_owner_that_gives_up_without_committing_has_events_repeated_when_an_answer_is_missed(monkeypatch):
    monkeypatch.setattr(serving, "commit_held", lambda world, state, me: state)

    with pytest.raises(BrokenError, match="repeated without a fault"):
        explore(group(2, "ab", "ba"))


def test_partitions_are_forgotten_when_nobody_asks_for_the_round_that_grants_them(monkeypatch):
    def silent(state, node):
        return node.known > node.epoch or state.group is Group.PREPARING

    monkeypatch.setattr(member, "wants_round", silent)

    with pytest.raises(BrokenError, match="partitions forgotten"):
        explore(group(2, "ab", "ba"))


def test_past_the_cap_an_owner_that_has_let_go_must_ask_for_the_next_round(monkeypatch):
    def only_when_told(state, node):
        asks = node.follows or node.known > node.epoch or node.draining > node.told
        return asks or state.group is Group.PREPARING

    monkeypatch.setattr(rounds, "MOST_FOLLOW_UPS", 0)
    monkeypatch.setattr(member, "wants_round", only_when_told)

    with pytest.raises(BrokenError, match="partitions forgotten"):
        explore(group(2, "ab", "ba", events=1, mishaps=1))


def test_a_leader_that_takes_from_whom_it_wants_to_leave_alone_never_rests(monkeypatch):
    decide = rounds.decide

    def restless(plan, introductions, partitions, generation, awaited=()):
        shares = decide(plan, introductions, partitions, generation, awaited)
        first = min(shares)
        return shares | {first: rounds.Share((), shares[first].origin)}

    monkeypatch.setattr(rounds, "decide", restless)

    with pytest.raises(BrokenError, match=r"never at rest|partitions forgotten"):
        explore(group(2, "ab", "ba", events=0))
