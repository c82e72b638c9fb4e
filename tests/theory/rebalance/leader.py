"""The leader of a round: the real one, `services.consumer.rounds.decide`, fed with the model's members."""

from functools import cache

from theory.rebalance import broker
from theory.rebalance.state import NEVER, NOBODY, Group, Mail, Node, Phase, Scenario, State, bits, mask

from contracts.progress import RoundKind
from services.consumer import rounds
from services.consumer.rounds import Given, Introduction

GENERATION = 1000
"""Stands for the round's own generation; only differences count."""

Members = tuple[tuple[int, Node], ...]


def lead(world: Scenario, state: State, me: int) -> State | None:
    """Decide the round and send the assignment. Who leads after the leader's loss is the broker's choice: anybody."""
    node = state.nodes[me]
    if state.group is not Group.COMPLETING or node.phase is not Phase.JOINING or not broker.knows(state, me):
        return None
    if state.leader not in {me, NOBODY}:
        return None
    mails = decided(world, node.known, tuple((each, _as_introduced(state.nodes[each])) for each in bits(state.joined)))
    nodes = tuple(
        each._replace(mail=mails[number]) if number in mails and each.phase is Phase.JOINING else each
        for number, each in enumerate(state.nodes)
    )
    return state._replace(group=Group.STABLE, leader=me, joined=0, nodes=nodes)


def _as_introduced(node: Node) -> Node:
    """Without what no introduction says: the same decision need not be taken twice."""
    return node._replace(phase=Phase.JOINING, known=0, at=0, draining=False, mail=None)


@cache
def decided(world: Scenario, epoch: int, members: Members) -> dict[int, Mail]:
    """Ask the real leader. Member ids are the replicas' numbers: a lost member's old id is out of the group by then."""
    plan = world.plans[epoch - 1] if epoch else None
    introductions = {str(me): introduction(world, me, node) for me, node in members}
    shares = rounds.decide(plan, introductions, range(world.partitions), GENERATION)
    return {int(me): _mail(world, share) for me, share in shares.items()}


def introduction(world: Scenario, me: int, node: Node) -> Introduction:
    """What this member says of itself when it joins."""
    return Introduction(
        name=world.names[me],
        incarnation=str(me),
        epoch=node.epoch,
        owned=tuple(bits(node.given if world.eager else node.open | node.closing)),
        generation=NEVER if node.age == NEVER else GENERATION - node.age,
        given={p: Given(node.given_at if p == world.tracked else 0, 0) for p in bits(node.given)},
        draining=node.told,
        eager=world.eager,
        follows=RoundKind.MEMBERSHIP if node.follows else None,
        follow_ups=node.follow_ups,
    )


def _mail(world: Scenario, share: rounds.Share) -> Mail:
    origin = share.origin
    at = origin.given[world.tracked].offset if world.tracked in origin.given else 0
    follow_ups = origin.follow_ups if origin.again else 0
    return Mail(mask(share.partitions), mask(origin.given), at, origin.epoch, origin.again, follow_ups)
