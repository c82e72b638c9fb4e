"""The broker's side of Kafka's classic group protocol: rebalances, sessions, fencing, restart."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from aiokafka.coordinator.protocol import ConsumerProtocol
from theory.rebalance.processes import Simulation

NONE: Final = 0
COORDINATOR_LOADING: Final = 14
NOT_COORDINATOR: Final = 16
ILLEGAL_GENERATION: Final = 22
UNKNOWN_MEMBER: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
MEMBER_ID_REQUIRED: Final = 79

Answer = Callable[..., None]


class State(StrEnum):
    """Group states with the names of `kafka-consumer-groups`."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(eq=False)
class Member:
    """The coordinator's state of a member."""

    id: str
    process: str
    session_s: float
    rebalance_s: float
    metadata: bytes = b""
    assignment: bytes = b""
    join: Answer | None = None
    """The pending answer to JoinGroup."""
    sync: Answer | None = None
    """The pending answer to SyncGroup."""
    renewals: int = 0

    @property
    def partitions(self) -> frozenset[int]:
        """Partitions of its last assignment."""
        if not self.assignment:
            return frozenset()
        given = ConsumerProtocol.ASSIGNMENT.decode(self.assignment).assignment
        return frozenset(partition for _, mine in given for partition in mine)


@dataclass
class Group:
    """One group. `commit` is called with accepted offsets, `on_removed` with a removed member and the reason."""

    sim: Simulation
    commit: Callable[[str, dict[int, int]], None]
    on_removed: Callable[[Member, str], None] = lambda member, why: None
    state: State = State.EMPTY
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    leader: str = ""
    is_away: bool = False
    _pending: dict[str, Member] = field(default_factory=dict)
    _ids: int = 0
    _round: int = 0
    _persisted: tuple[int, str, list[tuple[str, str, float, float, bytes, bytes]]] = (0, "", [])

    def join(self, request: Any, process: str, answer: Answer) -> None:
        """Handle JoinGroup; it is answered when all members have joined or the rebalance time-out is over."""

        def refuse(error: int, member_id: str = "") -> None:
            answer(request.RESPONSE_TYPE(0, error, -1, "", "", member_id, []))

        (_, metadata), *_ = request.group_protocols
        if self.is_away:
            return refuse(NOT_COORDINATOR)
        if not request.member_id:
            self._ids += 1
            fresh = Member(
                f"{process}-{self._ids}", process, request.session_timeout / 1000, request.rebalance_timeout / 1000
            )
            self._pending[fresh.id] = fresh
            self.sim.at(self.sim.now_s + fresh.session_s, self._expire_pending, fresh)
            return refuse(MEMBER_ID_REQUIRED, fresh.id)
        if request.member_id in self._pending:
            member = self._pending.pop(request.member_id)
            self.members[member.id] = member
            self.leader = self.leader or member.id
        elif request.member_id not in self.members:
            return refuse(UNKNOWN_MEMBER, request.member_id)
        else:
            member = self.members[request.member_id]
            same = metadata == member.metadata
            if same and (self.state is State.COMPLETING or (self.state is State.STABLE and member.id != self.leader)):
                self._renew_session(member)
                return answer(self._join_response(request, member))
        member.metadata = metadata
        member.join = lambda error: refuse(error) if error else answer(self._join_response(request, member))
        if self.state is not State.PREPARING:
            self._prepare()
        return self._complete_if_all()

    def sync(self, request: Any, answer: Answer) -> None:
        """Handle SyncGroup; it is answered once the leader has sent the assignment."""

        def reply(error: int, assignment: bytes = b"") -> None:
            answer(request.RESPONSE_TYPE(error, assignment))

        if error := self._error_of(request.member_id, request.generation_id):
            return reply(error)
        member = self.members[request.member_id]
        self._renew_session(member)
        if self.state is State.PREPARING:
            return reply(REBALANCE_IN_PROGRESS)
        if self.state is State.STABLE:
            return reply(NONE, member.assignment)
        member.sync = reply
        if member.id == self.leader:
            shares = dict(request.group_assignment)
            self.state = State.STABLE
            for each in self.members.values():
                each.assignment = shares.get(each.id, b"")
            self._persist()
            for each in self.members.values():
                waits, each.sync = each.sync, None
                if waits:
                    self._renew_session(each)
                    waits(NONE, each.assignment)
        return None

    def heartbeat(self, member_id: str, generation: int) -> int:
        """Return the error code."""
        if error := self._error_of(member_id, generation):
            return error
        self._renew_session(self.members[member_id])
        return REBALANCE_IN_PROGRESS if self.state is State.PREPARING else NONE

    def offset_commit(self, member_id: str, generation: int, offsets: dict[int, int]) -> int:
        """Return the error code. Kafka does not check who owns the partitions."""
        if self.is_away:
            return NOT_COORDINATOR
        if not (generation < 0 and self.state is State.EMPTY):
            if error := self._error_of(member_id, generation):
                return error
            if self.state is State.COMPLETING:
                return REBALANCE_IN_PROGRESS
            self._renew_session(self.members[member_id])
        self.commit(member_id, offsets)
        return NONE

    def leave(self, member_id: str) -> int:
        """Return the error code. Any client may remove any member."""
        if self.is_away:
            return NOT_COORDINATOR
        if self._pending.pop(member_id, None) is None:
            if member_id not in self.members:
                return UNKNOWN_MEMBER
            self._remove(self.members[member_id], "left")
        self._complete_if_all()
        return NONE

    def stop(self) -> None:
        """Lose the broker and all state that is not stored."""
        self.is_away = True
        self._round += 1

    def load(self) -> None:
        """Load the stored state, on another broker or the restarted one."""
        generation, self.leader, stored = self._persisted
        self.generation, self._pending = generation, {}
        self.members = {each[0]: Member(*each) for each in stored}
        self.state = State.STABLE if self.members else State.EMPTY
        self.is_away = False
        for member in self.members.values():
            self._renew_session(member)

    def _error_of(self, member_id: str, generation: int) -> int:
        if self.is_away:
            return NOT_COORDINATOR
        if member_id not in self.members:
            return UNKNOWN_MEMBER
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def _join_response(self, request: Any, member: Member) -> Any:
        leads = member.id == self.leader
        members = [(each.id, None, each.metadata) for each in self.members.values()] if leads else []
        return request.RESPONSE_TYPE(0, NONE, self.generation, "plan", self.leader, member.id, members)

    def _prepare(self) -> None:
        if self.state is State.COMPLETING:
            for member in self.members.values():
                waits, member.sync = member.sync, None
                if waits:
                    self._renew_session(member)
                    waits(REBALANCE_IN_PROGRESS)
        self.state = State.PREPARING
        self._round += 1
        timeout_s = max(member.rebalance_s for member in self.members.values())
        self.sim.at(self.sim.now_s + timeout_s, self._remove_late_members, self._round)

    def _complete_if_all(self) -> None:
        if self.state is State.PREPARING and not self._pending and all(each.join for each in self.members.values()):
            self._complete()

    def _remove_late_members(self, number: int) -> None:
        if self.state is State.PREPARING and number == self._round and not self.is_away:
            for late in [each for each in self.members.values() if not each.join]:
                self._remove(late, "rebalance")
            if self.state is State.PREPARING:
                self._complete()

    def _complete(self) -> None:
        self.generation += 1
        self._round += 1
        if not self.members:
            self.state, self.leader = State.EMPTY, ""
            self._persist()
            return
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.state = State.COMPLETING
        for member in self.members.values():
            waits, member.join = member.join, None
            self._renew_session(member)
            if waits:
                waits(NONE)

    def _remove(self, member: Member, why: str) -> None:
        del self.members[member.id]  # as in Kafka, a pending SyncGroup of it is not answered
        if member.join:
            member.join(UNKNOWN_MEMBER)
        if self.leader == member.id:
            self.leader = next(iter(self.members), "")
        self.on_removed(member, why)
        if self.state in (State.STABLE, State.COMPLETING):
            if self.members:
                self._prepare()
            else:
                self.state = State.PREPARING
                self._complete()
        elif not self.members:
            self._complete()

    def _renew_session(self, member: Member) -> None:
        member.renewals += 1
        self.sim.at(self.sim.now_s + member.session_s, self._expire, member, member.renewals)

    def _expire(self, member: Member, renewals: int) -> None:
        if self.members.get(member.id) is not member or member.renewals != renewals or self.is_away:
            return
        if member.join or member.sync:
            self._renew_session(member)  # Kafka does not expire a member that waits
        else:
            self._remove(member, "session")
            self._complete_if_all()

    def _expire_pending(self, pending: Member) -> None:
        if self._pending.get(pending.id) is pending:
            del self._pending[pending.id]
            self._complete_if_all()

    def _persist(self) -> None:
        members = [
            (each.id, each.process, each.session_s, each.rebalance_s, each.metadata, each.assignment)
            for each in self.members.values()
        ]
        self._persisted = (self.generation, self.leader, members)
