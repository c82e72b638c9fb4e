"""The real consumer, with all of aiokafka's client, against simulated brokers in virtual time: what must always hold.

Nothing is a twin: replicas are `PlanConsumer`s in event loops of their own; below them only connections are replaced.
They get stopped and killed, cut off and evicted, brokers restart and vanish, clocks are set. `rebalance/checks.py` says
what must hold; each test that plants a fault in the real objects shows that it would be seen. `-s` prints the figures.
"""

import logging
from contextlib import ExitStack
from unittest.mock import patch

import pytest
from theory.rebalance.checks import ViolationError
from theory.rebalance.group import Group
from theory.rebalance.replica import SESSION_S
from theory.rebalance.schedule import both, cut, evict, freeze, kill, random_story, reset, restart, serve_in, swap

from services.consumer import assignor, coordinator, rebalance
from services.consumer.handover import Handover
from services.consumer.lease import Lease
from services.consumer.output import Committer
from services.consumer.rebalance import Share
from services.consumer.server import Server


@pytest.fixture(autouse=True)
def _in_silence():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


FAULTS = {
    "its connections break": reset,
    "it is killed": kill,
    "it is stopped for two sessions": lambda number: freeze(number, 2 * SESSION_S),
    "it is cut off for two sessions": lambda number: cut(number, 2 * SESSION_S),
    "it is evicted alive": evict,
    "the broker restarts": lambda number: restart(1, 0.3),
}


@pytest.mark.parametrize("seed", range(8))
def test_no_event_is_repeated_without_faults(seed):
    story = random_story(seed, most_faults=0).run()

    assert sum(story.checks.output.values()) > 20
    assert story.checks.repeated == 0
    assert story.ended == []


@pytest.mark.parametrize("seed", range(100, 122))
def test_the_guarantees_hold_under_random_faults(seed):
    story = random_story(seed).run()

    print(f"{sum(story.checks.output.values())} events, {story.checks.repeated} repeated: {story}")  # noqa: T201


@pytest.mark.parametrize("fault", FAULTS)
def test_the_guarantees_hold_with_a_fault_at_each_message_of_a_handover(fault):
    """Two replicas exchange their partitions; at each message in turn, to the broker or back, something happens."""
    messages = 22
    assert swap().run().messages > messages
    for number in range(1, messages + 1, 3):
        swap(at_messages={number: FAULTS[fault]}).run()


def test_the_guarantees_hold_if_a_message_of_a_handover_is_late():
    """Later than what others do meanwhile, and, at the end, than the session lasts."""
    for number in range(1, 20, 3):
        swap(late_s={number: 0.3 * SESSION_S}).run()
        swap(late_s={number: 1.2 * SESSION_S}).run()


def test_the_same_seed_gives_the_same_run():
    first, second = random_story(104).run(), random_story(104).run()

    assert (first.history, first.checks.begun) == (second.history, second.checks.begun)


# The model can fail: each of these plants a fault in the real objects, and is seen.


async def _at_once(*_):
    return True


async def _without_looking(self, assignment, offsets):
    await coordinator.GroupCoordinator._do_commit_offsets(self, assignment, offsets)


async def _carry_out_and_rest(self, partitions, generation, apply_assignment=Handover.apply_assignment):
    await apply_assignment(self, partitions, generation)
    return False


def _taking_from_the_first(plan, metadata, *rest, decide=rebalance.decide):
    shares = decide(plan, metadata, *rest)
    first = min(shares)
    return shares | {first: Share((), shares[first].assignment)}


def _keep_partitions(self):
    self.committer.suspend()
    self.assignor.forget()
    return self.calls.on_lost(())


PLANTED = {
    "a leader that grants what is still claimed": (
        {(rebalance, "last_owners"): lambda metadata: {}},
        r"two members have the same partition|done twice for nothing",
    ),
    "a member that keeps its claims after a loss": (
        {(Handover, "lose_all"): _keep_partitions},
        "two members have the same partition|the committed offset .* goes back",
    ),
    "commits in the middle of a join, under whatever generation": (
        {
            (Committer, "_may_commit"): lambda self: True,
            (coordinator.PlanCoordinator, "_do_commit_offsets"): _without_looking,
        },
        "goes back|done twice for nothing|without a fault to blame",
    ),
    "nobody waits for the lease": (
        {(Lease, "wait_until_valid"): _at_once},
        "its lease is out|time-out has run out|having stood still",
    ),
    "an event that counts as done before its output is there": (
        {(Server, "_finish_later"): lambda self, queue, batch, completion, events: queue.finish(batch)},
        "with output to",
    ),
    "nobody asks for the round that grants what was given up": (
        {(Handover, "apply_assignment"): _carry_out_and_rest},
        "are not served",
    ),
    "a leader that takes from whom it wants to leave alone": (
        {(assignor, "decide"): _taking_from_the_first},
        "are not served|where the plan wants",
    ),
}


def _first_violation(planted):
    with ExitStack() as patches:
        for (owner, name), wrong in planted.items():
            patches.enter_context(patch.object(owner, name, wrong))
        for seed in range(60):
            random_story(seed).run()


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_detected(fault):
    planted, seen = PLANTED[fault]

    with pytest.raises(ViolationError, match=seen):
        _first_violation(planted)


def test_a_lease_that_runs_from_the_time_of_the_answer_is_detected(monkeypatch):
    def renew_now(self, sent_s, renew=Lease.renew, **how):
        renew(self, self.now_s(), **how)

    monkeypatch.setattr(Lease, "renew", renew_now)

    with pytest.raises(ViolationError, match="its lease is out"):
        _answers_are_late_and_then_there_are_none()


def _answers_are_late_and_then_there_are_none():
    """With events enough in hand to serve on."""
    late_s = dict.fromkeys(range(1, 2000), 0.14 * SESSION_S)
    for tenth in range(10, 20):
        gone_s = 0.1 * tenth * SESSION_S
        acts = [(0.1, serve_in(0.08)), (gone_s, cut(0, 1.5 * SESSION_S)), (gone_s + 1.5 * SESSION_S, serve_in(0.001))]
        swap(rate=20, acts=acts, late_s=late_s).run()


def test_a_release_before_the_commit_is_detected(monkeypatch):
    async def pretend(self, partitions):
        for queue in (queue for p, queue in self._queues.items() if p in partitions):
            queue.mark_committed(queue.position)
        return True

    monkeypatch.setattr(Committer, "last_commit", pretend)

    with pytest.raises(ViolationError, match="tells released of partition"):
        swap(rate=50).run()


def test_an_offset_handed_over_before_the_last_generation_is_stale(monkeypatch):
    def offsets_of_any_age(metadata, generation):
        return {p: at for each in metadata.values() for p, at in each.handed_over.items()}

    monkeypatch.setattr(rebalance, "_handed_over_offsets", offsets_of_any_age)

    with pytest.raises(ViolationError, match="done twice for nothing"):
        _an_answer_is_missed_and_the_new_owner_dies(range(14, 40))


def _an_answer_is_missed_and_the_new_owner_dies(answers):
    for number in answers:
        missed = {number: lambda who: both(reset(who), cut(who, 0.6 * SESSION_S))}
        for other in (0, 1):
            swap(rate=30, acts=[(0.5 * SESSION_S, kill(other))], at_messages=missed).run()


def test_committed_offsets_go_back_without_fencing():
    def accept(self, member_id, generation, offsets):
        self.commit(member_id, offsets)
        return 0

    everything_else = ("lease", "session", "again, begun", "done twice", "two members")
    with (
        patch.object(Group, "offset_commit", accept),
        patch("theory.rebalance.checks.IGNORED_VIOLATIONS", everything_else),
        pytest.raises(ViolationError, match=r"the committed offset .* goes back"),
    ):
        _one_is_stopped_and_evicted_with_events_to_commit()


def _one_is_stopped_and_evicted_with_events_to_commit():
    for tenth in range(10):
        evicted = both(freeze(0, 0.3 * SESSION_S), evict(0))
        swap(rate=50, acts=[(0.5 + 0.01 * tenth, evicted)]).run()
