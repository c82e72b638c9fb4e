"""How a replica serves, commits, gives up, is drained, and what becomes of one that is lost.

Each step returns the state after it, or None where it cannot happen.
"""

from theory.rebalance import broker
from theory.rebalance.state import Node, Phase, Scenario, State


class BrokenError(AssertionError):
    """A promise of the protocol does not hold."""


GONE = {phase: Node(phase) for phase in (Phase.DEAD, Phase.LEFT)}
ACTIVE = {Phase.JOINING, Phase.MEMBER}


def serve(world: Scenario, state: State, me: int) -> State | None:
    """Serve one event. What a replica does after its session has ended is of no account: it is left out."""
    node = state.nodes[me]
    if node.phase not in ACTIVE or not node.open >> world.tracked & 1 or node.at == world.events:
        return None
    if not broker.knows(state, me):
        return None
    if node.at > state.served:
        raise BrokenError(f"events skipped: replica {me} serves {node.at}, served are {state.served}")
    served = max(state.served, node.at + 1)
    return broker.put(state._replace(served=served), me, node._replace(at=node.at + 1))


def commit(world: Scenario, state: State, me: int) -> State | None:
    """Commit the tracked partition at the interval. Never while joining."""
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER or not node.open >> world.tracked & 1 or node.at == state.committed:
        return None
    return commit_held(world, state, me)


def commit_held(world: Scenario, state: State, me: int) -> State:
    """Commit where there is something to commit; a refusal means that the membership is lost."""
    node = state.nodes[me]
    if not (node.open | node.closing) >> world.tracked & 1:
        return state
    if not broker.accepts(state, me):
        return lose(state, me)
    if node.at < state.committed:
        raise BrokenError(f"the committed offset goes back from {state.committed} to {node.at}, by replica {me}")
    return state._replace(committed=node.at)


def notice(world: Scenario, state: State, me: int) -> State | None:
    """A heartbeat or a join is refused: the broker does not know this member any more."""
    if state.nodes[me].phase not in ACTIVE or broker.knows(state, me):
        return None
    return lose(state, me)


def lose(state: State, me: int) -> State:
    """Drop everything at once; join as a new member, or be gone if that was wanted anyway."""
    node = state.nodes[me]
    return broker.put(state, me, GONE[Phase.LEFT] if node.draining else Node(Phase.OUT, known=node.known))


def close(world: Scenario, state: State, me: int) -> State | None:
    """The event in flight is finished: commit, then give up."""
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER or not node.closing:
        return None
    return _give_up(world, commit_held(world, state, me), me)


def close_uncommitted(world: Scenario, state: State, me: int) -> State | None:
    """As `close`, but the commit is not answered."""
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER or not node.closing >> world.tracked & 1 or node.at == state.committed:
        return None
    return _give_up(world, state, me)


def _give_up(world: Scenario, state: State, me: int) -> State:
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER:
        return state
    if node.closing >> world.tracked & 1:
        node = node._replace(given_at=node.at, at=0)
    return broker.put(state, me, node._replace(closing=0, given=node.given | node.closing))


def crash(world: Scenario, state: State, me: int) -> State | None:
    """SIGKILL. The broker, and a leader whose round it joined, still take it for a member."""
    node = state.nodes[me]
    if node.phase not in ACTIVE:
        return None
    if not broker.knows(state, me):
        return broker.put(state, me, GONE[Phase.DEAD])
    return broker.put(state, me, node._replace(phase=Phase.DEAD, known=0, draining=False, mail=None))


def evict(world: Scenario, state: State, me: int) -> State | None:
    """The group is told that the dead member is dead, or its session ends."""
    if state.nodes[me].phase is not Phase.DEAD or not broker.knows(state, me):
        return None
    return broker.remove(broker.put(state, me, GONE[Phase.DEAD]), me)


def expire(world: Scenario, state: State, me: int) -> State | None:
    """The session or the rebalance time-out of a living member ends, or it is evicted by mistake. It does not know."""
    if state.nodes[me].phase not in ACTIVE or not broker.knows(state, me):
        return None
    return broker.remove(state, me)


def ask_for_drain(world: Scenario, state: State, me: int) -> State | None:
    """SIGTERM."""
    node = state.nodes[me]
    if node.phase not in ACTIVE or node.draining or not world.may_drain >> me & 1:
        return None
    return broker.put(state, me, node._replace(draining=True))


def leave(world: Scenario, state: State, me: int) -> State | None:
    """Drained: others have taken over what it had."""
    node = state.nodes[me]
    empty = not (node.open or node.closing or node.given)
    if node.phase is not Phase.MEMBER or not node.told or not empty or not broker.knows(state, me):
        return None
    return broker.remove(broker.put(state, me, GONE[Phase.LEFT]), me)


def leave_undrained(world: Scenario, state: State, me: int) -> State | None:
    """The drain's time is up: commit and leave."""
    node = state.nodes[me]
    if node.phase is not Phase.MEMBER or not node.draining or not node.open or not broker.knows(state, me):
        return None
    state = commit_held(world, state, me)
    if state.nodes[me].phase is not Phase.MEMBER:
        return state
    return broker.remove(broker.put(state, me, GONE[Phase.LEFT]), me)
