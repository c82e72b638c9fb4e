"""How a replica takes part in rounds: joins, carries out what it is given, misses an answer.

Each step returns the state after it, or None where it cannot happen.
"""

from theory.rebalance import broker
from theory.rebalance.serving import BrokenError, commit_held
from theory.rebalance.state import Group, Node, Phase, Scenario, State


def start(world: Scenario, state: State, me: int) -> State | None:
    """A new process reads the plans to their end and joins."""
    node = state.nodes[me]
    if node.phase is not Phase.DOWN:
        return None
    published = max(each.known for each in state.nodes)
    return _send_join(broker.put(state, me, node._replace(known=published)), me)


def learn(world: Scenario, state: State, me: int) -> State | None:
    """The next plan arrives here, sooner or later than elsewhere."""
    node = state.nodes[me]
    if node.phase in {Phase.DOWN, Phase.DEAD, Phase.LEFT} or node.known == len(world.plans):
        return None
    return broker.put(state, me, node._replace(known=node.known + 1))


def join(world: Scenario, state: State, me: int) -> State | None:
    """Join after a loss, or again: for a newer plan, a follow-up, a heartbeat's answer, a drain."""
    node = state.nodes[me]
    if node.phase is Phase.OUT:
        return _send_join(state, me)
    if not broker.knows(state, me):
        return None
    if node.phase is Phase.JOINING:  # the round it joined was broken off before the leader's assignment
        broken_off = state.group is Group.PREPARING and not state.joined >> me & 1
        return _send_join(state, me) if broken_off and not node.mail else None
    if node.phase is not Phase.MEMBER or node.closing or not wants_round(state, node):
        return None
    return _join_empty_handed(world, state, me) if world.eager else _send_join(state, me)


def join_while_closing(world: Scenario, state: State, me: int) -> State | None:
    """The event in flight takes longer than the group should wait: join, still claiming its partition."""
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER or not node.closing or not broker.knows(state, me):
        return None
    return _send_join(state, me) if wants_round(state, node) else None


def wants_round(state: State, node: Node) -> bool:
    """Return whether a member with an assignment has a reason to join again."""
    asks = node.follows or node.given or node.known > node.epoch or node.draining > node.told
    return bool(asks) or state.group is Group.PREPARING


def _send_join(state: State, me: int) -> State:
    node = state.nodes[me]
    return broker.join(broker.put(state, me, node._replace(phase=Phase.JOINING, told=node.draining, mail=None)), me)


def _join_empty_handed(world: Scenario, state: State, me: int) -> State:
    state = commit_held(world, state, me)
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER:
        return state
    return _send_join(broker.put(state, me, node._replace(open=0, given=node.open, given_at=node.at, at=0)), me)


def carry_out(world: Scenario, state: State, me: int) -> State | None:
    """Read the SyncGroup answer: what is kept goes on, what was taken is closed, what is new is opened."""
    node = state.nodes[me]
    mail = node.mail
    if mail is None:
        return None
    held = node.open | node.closing
    at = node.at if held >> world.tracked & 1 else 0
    if (mail.partitions & ~held) >> world.tracked & 1:
        at = mail.given_at if mail.given >> world.tracked & 1 else state.committed
        _check_beginning(world, state, me, at)
    after = node._replace(
        phase=Phase.MEMBER, epoch=mail.epoch, age=0, open=mail.partitions, closing=held & ~mail.partitions,
        given=0, given_at=0, at=at, follows=mail.again, follow_ups=mail.follow_ups, mail=None,
    )  # fmt: skip
    return broker.put(state, me, after)


def _check_beginning(world: Scenario, state: State, me: int, at: int) -> None:
    if not broker.knows(state, me):  # awake after its session: the broker takes nothing from it any more
        return
    if at > state.served:
        raise BrokenError(f"events lost: replica {me} begins at {at}, served are {state.served}")
    if at < state.committed:
        raise BrokenError(f"replica {me} begins at {at}, before the committed offset {state.committed}")
    if at < state.served and state.faults == world.faults:
        raise BrokenError(f"events repeated without a fault: replica {me} begins at {at}, served are {state.served}")


def miss(world: Scenario, state: State, me: int) -> State | None:
    """SyncGroup comes too late: the group is in its next round. Join that one, claiming what was claimed before."""
    late = state.nodes[me].mail is not None and broker.knows(state, me) and state.group is Group.PREPARING
    return _send_join(state, me) if late else None


def lose_answer(world: Scenario, state: State, me: int) -> State | None:
    """The leader's SyncGroup answer is lost. It joins again, which opens a round; a follower would get it again."""
    if state.nodes[me].mail is None or not broker.knows(state, me):
        return None
    return _send_join(state, me) if state.group is Group.STABLE and state.leader == me else None
