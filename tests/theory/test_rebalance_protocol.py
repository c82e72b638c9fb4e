"""Invariants of the real consumer and aiokafka's client, against simulated brokers in virtual time.

Replicas are `PlanConsumer`s in separate event loops; only their connections are simulated. They are stopped, killed,
cut off and evicted, brokers restart and vanish, clocks are set. `rebalance/checks.py` has the invariants. Tests that
plant a fault in the real objects show that the checks detect it. `-s` prints the figures.
"""

import logging
from contextlib import ExitStack
from unittest.mock import patch

import msgspec
import pytest
from theory.rebalance.checks import ViolationError
from theory.rebalance.group import Group
from theory.rebalance.replica import SESSION_S
from theory.rebalance.schedule import (
    SETTLING_S,
    Scenario,
    all_of,
    blind,
    cut,
    evict,
    freeze,
    kill,
    random_scenario,
    replan,
    reset,
    restart,
    serve_in,
    swap,
)

from contracts.rebalance_protocol import PLAN_PROTOCOLS
from services.consumer import assignor, coordinator, rebalance
from services.consumer.handover import Handover
from services.consumer.lease import Lease
from services.consumer.output import Committer
from services.consumer.rebalance import MemberMetadata, Share
from services.consumer.server import Server


@pytest.fixture(autouse=True)
def _disable_logging():
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
    scenario = random_scenario(seed, max_faults=0).run()

    assert sum(scenario.checks.output.values()) > 20
    assert scenario.checks.repeated == 0
    assert scenario.ended == []


@pytest.mark.parametrize("seed", range(100, 122))
def test_the_guarantees_hold_under_random_faults(seed):
    scenario = random_scenario(seed).run()

    print(f"{sum(scenario.checks.output.values())} events, {scenario.checks.repeated} repeated: {scenario}")  # noqa: T201


@pytest.mark.parametrize("fault", FAULTS)
def test_the_guarantees_hold_with_a_fault_at_each_message_of_a_handover(fault):
    """Two replicas exchange their partitions, with a fault at each message in turn, to the broker or back."""
    messages = 22
    assert swap().run().messages > messages
    for number in range(1, messages + 1, 3):
        swap(at_messages={number: FAULTS[fault]}).run()


def test_the_guarantees_hold_if_a_message_of_a_handover_is_late():
    """Later than the other members' messages, and later than the session."""
    for number in range(1, 20, 3):
        swap(late_s={number: 0.3 * SESSION_S}).run()
        swap(late_s={number: 1.2 * SESSION_S}).run()


@pytest.mark.parametrize("seed", range(200, 206))
@pytest.mark.parametrize("joins_s", [0.0, SETTLING_S + 0.1], ids=["as the first leader", "later"])
def test_the_guarantees_hold_next_to_a_member_that_reads_another_topic(seed, joins_s):
    scenario = random_scenario(seed, max_faults=seed % 2)
    scenario.stranger_s = joins_s
    scenario.run()

    stranger = next(process for process in scenario.sim.processes if process.name == "stranger")
    assert (stranger.ended, stranger.partitions) == ("", ())


@pytest.mark.parametrize("seed", range(300, 312))
def test_the_guarantees_hold_if_replicas_cannot_read_plans_and_one_claims_to_know_newer_ones(seed, monkeypatch):
    def forge(self, topics, metadata=assignor.PlanAssignor.metadata):
        subscription = metadata(self, topics)
        if self._replica == "r1":
            own = msgspec.json.decode(subscription.user_data, type=MemberMetadata)
            subscription.user_data = msgspec.json.encode(msgspec.structs.replace(own, newest_epoch=10**6))
        return subscription

    monkeypatch.setattr(assignor.PlanAssignor, "metadata", forge)
    scenario = random_scenario(seed, max_faults=seed % 2)
    scenario.actions += [(0.0, all_of(blind(0, 4.0), blind(2, 4.0))), (1.0, replan(seed)), (2.0, replan(seed + 1))]
    scenario.run()

    assert sum(scenario.checks.output.values()) > 20


@pytest.mark.parametrize("protocol", PLAN_PROTOCOLS)
def test_a_storm_of_plans_ends_with_the_last_one(protocol):
    storm = [(0.1 * number, replan(number)) for number in range(40)]
    scenario = Scenario(7, rebalance_protocol=protocol, actions=storm).run()

    assert scenario.checks.repeated == 0
    assert sum(scenario.checks.output.values()) > 50


def test_the_same_seed_gives_the_same_run():
    first, second = random_scenario(104).run(), random_scenario(104).run()

    assert (first.history, first.checks.begun) == (second.history, second.checks.begun)


# Planted faults in the real objects, which the checks must detect.


async def _return_at_once(*_):
    return True


async def _commit_unchecked(self, assignment, offsets):
    await coordinator.GroupCoordinator._do_commit_offsets(self, assignment, offsets)


async def _apply_without_rejoin(self, partitions, generation, apply_assignment=Handover.apply_assignment):
    await apply_assignment(self, partitions, generation)
    return False


def _take_from_first_member(plan, metadata, *rest, decide=rebalance.decide):
    shares = decide(plan, metadata, *rest)
    first = min(shares)
    return shares | {first: Share((), shares[first].assignment)}


def _keep_partitions(self):
    self.committer.suspend()
    self.assignor.forget()
    return self.calls.on_lost(())


PLANTED_FAULTS = {
    "a leader that grants claimed partitions": (
        {(rebalance, "last_owners"): lambda metadata: {}},
        r"two members own the same partition|a needless repeat",
    ),
    "a member that keeps its claims after a loss": (
        {(Handover, "lose_all"): _keep_partitions},
        "two members own the same partition|the committed offset .* goes back|a needless repeat",
    ),
    "commits in the middle of a join, under any generation": (
        {
            (Committer, "_may_commit"): lambda self: True,
            (coordinator.PlanCoordinator, "_do_commit_offsets"): _commit_unchecked,
        },
        "goes back|a needless repeat|without a fault as the cause",
    ),
    "events that start without a valid lease": (
        {(Lease, "wait_until_valid"): _return_at_once},
        "its lease is expired|time-out has expired|having stood still",
    ),
    "an event that counts as done before its output is acknowledged": (
        {(Server, "_finish_later"): lambda self, queue, batch, completion, events: queue.finish(batch)},
        "with output to",
    ),
    "no rejoin after a partition was given up": (
        {(Handover, "apply_assignment"): _apply_without_rejoin},
        "are not served",
    ),
    "a leader that takes partitions from members that should keep them": (
        {(assignor, "decide"): _take_from_first_member},
        "are not served|where the plan wants",
    ),
}


def _run_until_violation(patches_by_target):
    with ExitStack() as patches:
        for (owner, name), faulty in patches_by_target.items():
            patches.enter_context(patch.object(owner, name, faulty))
        for seed in range(60):
            random_scenario(seed).run()


@pytest.mark.parametrize("fault", PLANTED_FAULTS)
def test_a_planted_fault_is_detected(fault):
    patches_by_target, message = PLANTED_FAULTS[fault]

    with pytest.raises(ViolationError, match=message):
        _run_until_violation(patches_by_target)


def test_a_lease_that_runs_from_the_time_of_the_answer_is_detected(monkeypatch):
    def renew_now(self, sent_s, renew=Lease.renew, **how):
        renew(self, self.now_s(), **how)

    monkeypatch.setattr(Lease, "renew", renew_now)

    with pytest.raises(ViolationError, match="its lease is expired"):
        _answers_are_late_and_then_there_are_none()


def _answers_are_late_and_then_there_are_none():
    """The backlog is long enough to continue without the brokers."""
    late_s = dict.fromkeys(range(1, 2000), 0.14 * SESSION_S)
    for tenth in range(10, 20):
        cut_s = 0.1 * tenth * SESSION_S
        down_s = 1.5 * SESSION_S
        actions = [(0.1, serve_in(0.08)), (cut_s, cut(0, down_s)), (cut_s + down_s, serve_in(0.001))]
        swap(rate=20, actions=actions, late_s=late_s).run()


def test_a_release_before_the_commit_is_detected(monkeypatch):
    async def pretend(self):
        for _, queue in self._queues.items():
            if queue.position is not None:
                queue.mark_committed(queue.position)
        return True

    monkeypatch.setattr(Committer, "last_commit", pretend)

    with pytest.raises(ViolationError, match="announces released for partition"):
        swap(rate=50).run()


def test_an_offset_handed_over_before_the_last_generation_is_stale(monkeypatch):
    def offsets_of_any_age(metadata, generation):
        return {p: at for each in metadata.values() for p, at in each.handed_over.items()}

    monkeypatch.setattr(rebalance, "_handed_over_offsets", offsets_of_any_age)

    with pytest.raises(ViolationError, match="a needless repeat"):
        _an_answer_is_missed_and_the_new_owner_dies(range(14, 40))


def _an_answer_is_missed_and_the_new_owner_dies(answers):
    for number in answers:
        missed = {number: lambda who: all_of(reset(who), cut(who, 0.6 * SESSION_S))}
        for other in (0, 1):
            swap(rate=30, actions=[(0.5 * SESSION_S, kill(other))], at_messages=missed).run()


def test_committed_offsets_go_back_without_fencing():
    def accept(self, member_id, generation, offsets):
        self.commit(member_id, offsets)
        return 0

    everything_else = ("lease", "session", "again, begun", "needless repeat", "two members")
    with (
        patch.object(Group, "offset_commit", accept),
        patch("theory.rebalance.checks.IGNORED_VIOLATIONS", everything_else),
        pytest.raises(ViolationError, match=r"the committed offset .* goes back"),
    ):
        _one_is_stopped_and_evicted_with_events_to_commit()


def _one_is_stopped_and_evicted_with_events_to_commit():
    for tenth in range(10):
        evicted = all_of(freeze(0, 0.3 * SESSION_S), evict(0))
        swap(rate=50, actions=[(0.5 + 0.01 * tenth, evicted)]).run()
