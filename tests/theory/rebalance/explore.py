"""Every state that a scenario can reach, each checked; and from each, the way home is followed.

The way home takes, in a fixed order, whatever step is possible that nobody chooses: news arrives, answers are read,
the dead are evicted. It visits explored states only. If it ends well from every state, then under any fair order of
steps the group comes to rest: wherever chance leads it, the end stays in reach.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from theory.rebalance import broker, leader, member, serving
from theory.rebalance.serving import ACTIVE, BrokenError
from theory.rebalance.state import NOBODY, Group, Node, Phase, Scenario, State, bits, mask

from services.consumer.placement import Member, place

Step = Callable[[Scenario, State, int], State | None]

HOMEWARD: tuple[Step, ...] = (
    member.learn, serving.notice, serving.evict, member.carry_out, serving.close, leader.lead, member.join,
    serving.leave,
)  # fmt: skip
CHOSEN: tuple[Step, ...] = (member.miss, serving.serve, serving.commit, member.start, serving.ask_for_drain)
FAULTS: tuple[Step, ...] = (serving.crash, serving.expire, serving.close_uncommitted)
MISHAPS: tuple[Step, ...] = (member.join_while_closing, member.lose_answer, serving.leave_undrained)


@dataclass(slots=True)
class Explored:
    """What was found, by number of state."""

    world: Scenario
    states: list[State] = field(default_factory=list)
    numbers: dict[State, int] = field(default_factory=dict)
    came_from: list[int] = field(default_factory=list)
    home: list[int] = field(default_factory=list)
    """The next state on the way home; NOBODY at its end."""
    steps: int = 0
    nodes: dict[Node, Node] = field(default_factory=dict)
    """One object for equal ones: most of a state is what the state before was."""

    def note(self, state: State, came_from: int) -> int:
        """Keep a new state; return its number."""
        shared = tuple(self.nodes.setdefault(node, node) for node in state.nodes)
        state = state._replace(nodes=shared)
        number = self.numbers[state] = len(self.states)
        self.states.append(state)
        self.came_from.append(came_from)
        self.home.append(NOBODY)
        return number

    def story(self, number: int) -> str:
        """Return the steps that lead to a state: a shortest way."""
        steps: list[str] = []
        while number > 0:
            before = self.came_from[number]
            ways = _steps(self.world, self.states[before])
            steps.append(next(f"{step.__name__}({me})" for step, me, after, _ in ways if after == self.states[number]))
            number = before
        return " → ".join(reversed(steps)) or "nothing"


def beginning(world: Scenario) -> State:
    """Return the state in which those at start have carried out the first plan, and the others are down."""
    here = bits(world.at_start)
    nodes = [Node(Phase.DOWN)] * len(world.names)
    group = [Member(str(me), world.names[me]) for me in here]
    owned = place(world.plans[0], group, range(world.partitions), {})
    for me in here:
        nodes[me] = Node(Phase.MEMBER, known=1, epoch=1, age=0, open=mask(owned[str(me)]))
    return State(
        group=Group.STABLE if here else Group.EMPTY,
        leader=here[0] if here else NOBODY,
        ids=world.at_start,
        joined=0,
        nodes=tuple(nodes),
        committed=0,
        served=0,
        faults=world.faults,
        mishaps=world.mishaps,
    )


def explore(world: Scenario) -> Explored:
    """Visit every state, breadth first. Raises BrokenError with a shortest story of how it comes about."""
    leader.decided.cache_clear()
    found = Explored(world)
    found.note(beginning(world), 0)
    number = 0
    while number < len(found.states):  # states are numbered in the order in which they are to be visited
        try:
            _visit(number, found)
        except BrokenError as broken:
            raise BrokenError(f"{broken}, after {found.story(number)}: {found.states[number]}") from None
        number += 1
    _check_ways_home(found)
    return found


def _visit(number: int, found: Explored) -> None:
    state = found.states[number]
    _check_owners(state)
    for _, _, after, homeward in _steps(found.world, state):
        found.steps += 1
        known = found.numbers.get(after)
        if known is None:
            known = found.note(after, number)
        if homeward and found.home[number] == NOBODY:
            found.home[number] = known
    if found.home[number] == NOBODY:
        _check_rest(found.world, state)


def _steps(world: Scenario, state: State) -> Iterator[tuple[Step, int, State, bool]]:
    """Yield all that can happen next: the step, who takes it, the state after it, whether it leads home."""
    everyone = range(len(world.names))
    possible = [(HOMEWARD, state, True), (CHOSEN, state, False)]
    if state.faults:
        possible.append((FAULTS, state._replace(faults=state.faults - 1), False))
    if state.mishaps:
        possible.append((MISHAPS, state._replace(mishaps=state.mishaps - 1), False))
    for steps, before, homeward in possible:
        for step in steps:
            for me in everyone:
                if (after := step(world, before, me)) is not None:
                    yield step, me, after, homeward


def _check_owners(state: State) -> None:
    """Two whose commits count never have the same partition; nor, which is more, do any two members."""
    taken = 0
    for me, node in enumerate(state.nodes):
        if node.phase in ACTIVE and broker.knows(state, me):
            if taken & (node.open | node.closing):
                raise BrokenError("two members have the same partition")
            taken |= node.open | node.closing


def _check_rest(world: Scenario, state: State) -> None:
    """At rest every partition is served by one living member, the one that the newest plan wants."""
    here = [me for me, node in enumerate(state.nodes) if node.phase in ACTIVE]
    if not here:
        return
    owners = {p: me for me in here for p in bits(state.nodes[me].open)}
    if state.group is not Group.STABLE or len(owners) != world.partitions:
        raise BrokenError(f"partitions forgotten: at rest only {sorted(owners)} are served")
    group = [Member(str(me), world.names[me], str(me), state.nodes[me].draining) for me in here]
    previous = {p: str(me) for p, me in owners.items()}
    wanted = place(world.plans[-1], group, range(world.partitions), previous)
    if any(wanted[str(me)] != bits(state.nodes[me].open) for me in here):
        raise BrokenError(f"at rest {owners} is not what the plan wants: {wanted}")


def _check_ways_home(found: Explored) -> None:
    """Follow each way once: an end that has been checked, or a way that has been followed."""
    good = [False] * len(found.states)
    for start in range(len(found.states)):
        way, number = [], start
        on_way: set[int] = set()
        while number != NOBODY and not good[number]:
            if number in on_way:
                raise BrokenError(f"never at rest: goes round in circles, after {found.story(start)}")
            on_way.add(number)
            way.append(number)
            number = found.home[number]
        for each in way:
            good[each] = True
