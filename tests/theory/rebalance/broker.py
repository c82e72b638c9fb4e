"""The broker's side of Kafka's classic group protocol: who is a member, when a round completes, whose commit counts."""

from theory.rebalance.state import NEVER, NOBODY, OLD, Group, Node, State


def knows(state: State, me: int) -> bool:
    return bool(state.ids >> me & 1)


def accepts(state: State, me: int) -> bool:
    """Return whether the broker takes this member's commit, of whatever partition: it does not check assignments.

    Of the present generation and not between JoinGroup and SyncGroup: then the present generation is the next one.
    """
    return knows(state, me) and state.nodes[me].age == 0 and state.group in {Group.PREPARING, Group.STABLE}


def put(state: State, me: int, node: Node) -> State:
    nodes = state.nodes
    return state._replace(nodes=(*nodes[:me], node, *nodes[me + 1 :]))


def join(state: State, me: int) -> State:
    """JoinGroup: opens a round, or takes part in the open one. The last to come completes it."""
    leader = me if state.group is Group.EMPTY else state.leader
    joined = state.joined | 1 << me if state.group is Group.PREPARING else 1 << me
    return _complete(
        state._replace(group=Group.PREPARING, leader=leader, ids=state.ids | 1 << me, joined=joined),
    )


def remove(state: State, me: int) -> State:
    """The member left, was evicted, or its session or the rebalance time-out ran out. The others begin a new round."""
    ids = state.ids & ~(1 << me)
    leader = NOBODY if state.leader == me else state.leader
    joined = state.joined & ~(1 << me) if state.group is Group.PREPARING else 0
    group = Group.PREPARING if ids else Group.EMPTY
    return _complete(state._replace(group=group, leader=leader, ids=ids, joined=joined))


def _complete(state: State) -> State:
    if not state.ids or state.joined != state.ids:
        return state
    nodes = tuple(
        node._replace(age=min(node.age + 1, OLD)) if node.age != NEVER and knows(state, number) else node
        for number, node in enumerate(state.nodes)
    )
    return state._replace(group=Group.COMPLETING, nodes=nodes)
