"""Leads a classic consumer group: joins without topics, and hands out partitions by the plan.

The membership is static. A restart within the session keeps the leadership and starts no rebalance.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from aiokafka import errors
from aiokafka.errors import NoError, for_code

from autoscaler.live.foreign import wire
from autoscaler.live.foreign.members import COOPERATIVE, Member, assign
from autoscaler.live.foreign.membership import IDLE_EVERY_S, MAX_PARTITIONS, REBALANCE_EVERY_S, Membership, View
from autoscaler.live.foreign.wire import PLANNER, Partitions, read_assignment, read_subscription
from contracts.clock import monotonic_s

FOLLOW_UP_S: Final = 0.05
"""Wait before the rebalance that assigns partitions pending revocation. It grows with each further rebalance."""
SIGN_OF_LIFE_S: Final = 1.0
PLAN_WAIT_S: Final = 0.15
"""How long a rebalance that admits a started replica waits for the plan that gives it partitions. The plan would
otherwise stop the group once more."""
SLOW_REBALANCE_S: Final = 10.0
"""A rebalance that lasts at least this long is reported."""
FENCED_INSTANCE_ID: Final = 82
BY_BROKERS: Final = "brokers assign its partitions (KIP-848); set consumers = assigned, or group.protocol=classic"


class Leader(Membership):
    """The autoscaler as the leader of a classic group."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._member, self._generation = "", -1
        self._other, self._has_led = "", False
        """Id of the member that leads instead of this one, if one does; whether this one has led."""
        self._counts: dict[str, int] = {}
        self._withheld_s = self._began_s = 0.0
        self._ended_s = 0.0
        """End of the last rebalance that carried out a plan, until the next reading of commits; 0: none."""
        self._follow_ups = 0
        self._follow_up: asyncio.TimerHandle | None = None

    def _compare(self) -> None:
        """Rebalance if that would change an owner. After a restart the plan in force is usually carried out already."""
        view, (plan, replicas) = self.view, self._given
        if plan is None or not view.leads or self._withheld_s:
            return
        wanted = self._assign(plan, replicas, view.members)[0]
        if any(wanted[id_] != {topic: at for topic, at in view.places.get(id_, {}).items() if at} for id_ in wanted):
            self._due.set()
        else:
            self.view = replace(view, epoch=plan.epoch)

    async def _remove(self, members: list[Member]) -> None:
        await self._coordinator.leave({member.id: member.instance_id or None for member in members})

    async def _leave(self) -> None:
        await self._coordinator.leave({self._member: PLANNER})

    async def _serve(self) -> None:
        """Rebalance when necessary, and send heartbeats in between. Raises KafkaError if the coordinator is lost."""
        while not self.is_fenced:
            if self._generation < 0 or self._due.is_set():
                self._due.clear()
                self._generation = -1  # if the coordinator is lost meanwhile, the next one gets the join
                self._generation = await self._rebalance()
                continue
            if await self._wait_for_plan(self._settings.heartbeat_s):
                continue
            await self._remove_again()
            answer = await self._coordinator.send(wire.HEARTBEAT, self._generation, self._member, PLANNER)
            if self._must_rejoin(answer.error_code):
                self._generation = -1
            elif self.view.leads:
                self.view, self.problem = replace(self.view, seen_s=monotonic_s()), self._unseen()
                if await self._coordinator.count_partitions(self._topic, self.view.members) != self._counts:
                    self._due.set()  # a topic has grown: only the leader can notice
            else:
                await self._look(self._generation, self.view.protocol)

    async def _wait_for_plan(self, for_s: float) -> bool:
        """Return whether a rebalance is due within this time. Meanwhile, learn from the group's commits."""
        until_s = monotonic_s() + for_s
        while (left_s := until_s - monotonic_s()) > 0 and not self._due.is_set():
            await self._read_commits(rebalances=False)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, IDLE_EVERY_S)):
                    await self._due.wait()
        return self._due.is_set()

    async def _read_commits(self, *, rebalances: bool) -> None:
        count = min(self._counts.get(self._topic, 0), MAX_PARTITIONS)
        committed = await self._coordinator.committed(self._topic, count)
        self.commits.observe(monotonic_s(), committed, rebalances=rebalances)
        for pause_s in self.commits.pauses(self._began_s, self._ended_s) if self._ended_s else ():
            self._pauses_s.put(pause_s)
        self._ended_s = 0.0

    async def _rebalance(self) -> int:
        """Join, hand out partitions as the leader, and return the generation; −1: join again."""
        offered = [(name, wire.NO_TOPICS) for name in self._settings.led_protocols]
        times_ms = round(self._settings.session_s * 1000), round(wire.REQUEST_TIMEOUT_S * 1000)
        request = self._coordinator.send(wire.JOIN, *times_ms, self._member, PLANNER, wire.PROTOCOL_TYPE, offered)
        joined = await self._await_members(asyncio.ensure_future(request))
        if self._must_rejoin(joined.error_code):
            await asyncio.sleep(FOLLOW_UP_S)
            return -1
        self._member, generation = joined.member_id, int(joined.generation_id)
        if not joined.leader_id:
            self.problem = f"group {self._coordinator.group} cannot be led: {BY_BROKERS}"
            await self._leave()
            self._member = ""
            await asyncio.sleep(self._settings.session_s)
            return -1
        # After a restart, the answer names this member by its former id, and lists no members.
        leads = joined.leader_id == joined.member_id or joined.leader_id.startswith(f"{PLANNER}-")
        self._other, self._has_led = "" if leads else joined.leader_id, self._has_led or leads
        if self._other and (self._has_led or self._settings.take_over == "kick"):
            await self._kick()
            return -1
        if not joined.members:
            answer = await self._coordinator.send(wire.SYNC, generation, self._member, PLANNER, [])
            if self._must_rejoin(answer.error_code):
                return -1
            await self._look(generation, joined.group_protocol)
            return generation
        return await self._hand_out(joined, generation)

    async def _await_members(self, answer: "asyncio.Future[Any]") -> Any:
        """Return the answer to a join, which the slowest member delays. Meanwhile check that the coordinator lives."""
        self._began_s = began_s = monotonic_s()
        try:
            while not (await asyncio.wait([answer], timeout=REBALANCE_EVERY_S))[0]:
                await self._read_commits(rebalances=True)
                if monotonic_s() - self.view.seen_s < SIGN_OF_LIFE_S:
                    continue
                await self._coordinator.describe()
                await self._remove_again()
                self.view = replace(self.view, seen_s=monotonic_s())
                if (waited_s := monotonic_s() - began_s) > SLOW_REBALANCE_S:
                    self.problem = f"{self._coordinator.group}: a rebalance has waited {waited_s:.0f} s for a member"
            return answer.result()
        finally:
            answer.cancel()

    async def _hand_out(self, joined: Any, generation: int) -> int:
        listed = [one for one in joined.members if one[0] != self._member]
        if any(one[0] not in self._coordinator.known for one in listed):
            await self._coordinator.describe()
        members = [
            replace(self._coordinator.known.get(id_, Member(id_, instance or "")), subscription=read_subscription(raw))
            for id_, instance, raw in listed
        ]
        self._counts = await self._coordinator.count_partitions(self._topic, members)
        self._due.clear()
        if self._follow_up is not None:
            self._follow_up.cancel()
        await self._await_plan(members)
        (plan, replicas), protocol = self._given, joined.group_protocol
        given, withheld = self._assign(plan, replicas, members, is_cooperative=protocol in COOPERATIVE)
        packed = [(id_, wire.pack_assignment(given.get(id_, {}))) for id_ in (self._member, *given)]
        answer = await self._coordinator.send(wire.SYNC, generation, self._member, PLANNER, packed)
        if self._must_rejoin(answer.error_code):
            return -1
        places = {id_: dict(topics) for id_, topics in given.items()}
        for member in members if protocol in COOPERATIVE else ():
            for topic, held in member.subscription.owned.items():
                places[member.id][topic] = sorted({*places[member.id].get(topic, ()), *held})
        at_s = monotonic_s()
        if protocol not in COOPERATIVE and plan is not None and plan.epoch != self.view.epoch:
            self._ended_s = at_s
        epoch = plan.epoch if plan is not None and not withheld else self.view.epoch
        self.view = View(at_s, generation, True, protocol, epoch, tuple(members), places)
        self.problem = self._unseen()
        if withheld:
            self._withheld_s = self._withheld_s or at_s
            self._follow_ups += 1
            self._follow_up = self._loop.call_later(
                min(FOLLOW_UP_S * self._follow_ups, self._settings.session_s / 2), self._due.set
            )
        else:
            if self._withheld_s:
                self._pauses_s.put(at_s - self._withheld_s)
            self._withheld_s, self._follow_ups = 0.0, 0
            if self._given != (plan, replicas):  # it changed while the answer to SYNC was awaited
                self._compare()
        return generation

    async def _await_plan(self, members: Sequence[Member]) -> None:
        """If members of a replica have joined that the plan does not name, show them, and wait for the next plan."""
        (plan, replicas), known = self._given, {member.id for member in self.view.members}
        joined = replicas.by_name(member for member in members if member.id not in known)
        if plan is None or self._withheld_s or not {*joined} - {"", *plan.replicas}:
            return
        self.view = replace(self.view, seen_s=monotonic_s(), members=tuple(members))
        with suppress(TimeoutError):
            async with asyncio.timeout(PLAN_WAIT_S):
                await self._due.wait()
        self._due.clear()

    def _assign(self, *values: Any, is_cooperative: bool = False) -> tuple[dict[str, Partitions], int]:
        known: dict[str, Any] = {"topic": self._topic, "counts": self._counts, "previous": self.view.places}
        return assign(*values, is_cooperative=is_cooperative, **known)

    def _unseen(self) -> str:
        listed = ", ".join(sorted(name for name, count in self._counts.items() if not count))
        return f"topics {listed} cannot be seen, so owners keep them; allow DESCRIBE, or create them" if listed else ""

    async def _look(self, generation: int, protocol: str) -> None:
        """Read the members and their partitions from the coordinator."""
        if self._other:
            self.problem = (
                f"{self._other} leads group {self._coordinator.group} and assigns its partitions; plans are not "
                'followed until all consumers were stopped once; or set take_over = "kick", which repeats their last '
                "events once"
            )
        found = await self._coordinator.describe()
        if found[2] != "Stable":
            return
        listed = [one for one in found[5] if one[0] in self._coordinator.known]
        members = tuple(
            replace(self._coordinator.known[one[0]], subscription=read_subscription(one[4])) for one in listed
        )
        self._counts = await self._coordinator.count_partitions(self._topic, members)
        places = {one[0]: read_assignment(one[5]) for one in listed}
        self.view = View(monotonic_s(), generation, not self._other, protocol, 0, members, places)
        self._compare()

    async def _kick(self) -> None:
        """Let all consumers leave, so that this member leads. Eager ones own nothing between join and assignment."""
        await self._coordinator.describe()
        gone = {self._other: Member(self._other)} | self._coordinator.known
        line = f"{len(gone)} consumers leave and rejoin; their uncommitted events are repeated"
        self._notify(f"taking over group {self._coordinator.group}: {line}")
        await self._coordinator.leave({id_: member.instance_id or None for id_, member in gone.items()})
        await asyncio.sleep(FOLLOW_UP_S)

    def _must_rejoin(self, code: int) -> bool:
        """Return whether the answer asks for a new join. Raises KafkaError if another coordinator is needed."""
        error, self.is_fenced = for_code(code), code == FENCED_INSTANCE_ID
        if error is errors.UnknownMemberIdError:
            self._member = ""
        elif not self.is_fenced and error not in (
            NoError,
            errors.RebalanceInProgressError,
            errors.IllegalGenerationError,
        ):
            raise error(self._coordinator.group)
        return error is not NoError
