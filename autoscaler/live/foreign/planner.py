"""Plans for a group whose partitions the brokers assign (KIP-848): a member that reads nothing carries them.

The plan is in the member's rack id, where the assignor on the brokers reads it. Only a change of topics makes a broker
assign again, so each plan comes with the name of another topic, which does not exist. Plan and topic are in one
heartbeat. A restart within the session uses the same member id, rack id and topic, and moves nothing. If the plan is
longer than a rack id, further members carry parts of it. They publish first, without another topic, so nothing moves
before the last part is there.
"""

import asyncio
import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError, NoError, for_code

from autoscaler.live.foreign import wire
from autoscaler.live.foreign.broker_settings import configure_group
from autoscaler.live.foreign.members import ASSIGNED, Member, assign
from autoscaler.live.foreign.membership import RETRY_S, Membership, View
from autoscaler.live.foreign.packed import MOST_PARTS, join, key_of, split
from autoscaler.live.foreign.wire import PLANNER, Partitions, Subscription
from contracts.clock import monotonic_s
from contracts.plan import PlanRecord

POLL_S: Final = 0.05
"""Interval at which the group is read while it carries out a plan."""
POLLING_S: Final = 5.0
"""Longest time for which the group is read at `POLL_S`."""
LEAVE: Final = -1
CARRIERS: Final = (PLANNER, *(f"{PLANNER}-{number}" for number in range(2, MOST_PARTS + 1)))
"""Ids of the members that carry parts of the plan."""
UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH = 25, 110
CLASSIC: Final = "use the classic protocol; set consumers = led, or group.protocol=consumer at the consumers"

Owners = dict[bytes, list[bytes]]


class Planner(Membership):
    """The autoscaler as the member that carries the plan."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connection = arguments[0]
        self._epochs: dict[str, int] = {}
        """Carrier → its epoch, which its next heartbeat must repeat; 0 or missing: join."""
        self._number, self._owners = 0, Owners()
        self._newest: list[str] = []
        """Rack ids of the newest plan."""
        self._carried: list[str] = []
        self._racks = deque[str](maxlen=8 * MOST_PARTS)
        """The last rack ids that were sent. The answers to the newest ones may have been lost."""
        self._counts: dict[str, int] = {}
        """Topic → number of partitions."""
        self._ids: dict[str, bytes] = {}
        """Topic → its id, as the brokers list it once they have assigned a partition."""
        self._beat_s = self._published_s = self._free_s = 0.0
        self._is_configured = False
        self._too_long = ""

    def _compare(self) -> None:
        self._due.set()

    async def _remove(self, members: list[Member]) -> None:
        for member in members:
            with suppress(KafkaError, OSError, TimeoutError):  # else it leaves at the end of its session
                await self._coordinator.send(wire.BEAT, member.id, LEAVE, None, None, -1, None, None, None, None, {})

    async def _leave(self) -> None:
        await self._remove([Member(carrier) for carrier in self._epochs])

    async def _serve(self) -> None:
        configuring = asyncio.ensure_future(self._configure())  # without a controller it takes longer than a session
        try:
            while not self.is_fenced:
                self._due.clear()
                is_settled = await self._step()
                await self._remove_again()
                is_slow = is_settled or monotonic_s() - self._published_s > POLLING_S
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.heartbeat_s if is_slow else POLL_S):
                        await self._due.wait()
        finally:
            configuring.cancel()

    async def _configure(self) -> None:
        settings = self._coordinator.group, self._settings
        while not self._is_configured:
            with suppress(TimeoutError):
                for line in await asyncio.to_thread(configure_group, self._connection, *settings):
                    self._notify(line)
                self._is_configured = True
            await asyncio.sleep(RETRY_S)

    async def _step(self) -> bool:
        """Read the group, and publish the plan if the group has another one. Return whether it is carried out."""
        if (found := await self._coordinator.describe_assigned()) is None:
            classic = await self._coordinator.describe()
            self.view = View(monotonic_s(), protocol=ASSIGNED)
            count = len(classic[5])
            self.problem = f"group {self._coordinator.group}: its {count} consumers {CLASSIC}" if count else ""
            return True
        racks = {one[0]: one[2] or "" for one in found[7] if one[0] in CARRIERS}
        carried = [racks[carrier] for carrier in CARRIERS if racks.get(carrier)]
        if self._is_of_another(carried):
            self.is_fenced = True
            return True
        listed = [one for one in found[7] if one[0] not in CARRIERS]
        members = [self._member(one) for one in listed]
        self._counts = await self._coordinator.count_partitions(self._topic, members)
        self._ids |= {name: id_ for one in listed for places in one[8:10] for id_, name, *_ in places[0]}
        targets = {one[0]: _partitions(one[9]) for one in listed}
        plan, replicas = self._given
        given, _ = assign(plan, replicas, members, topic=self._topic, counts=self._counts, previous=targets)
        self._epochs = {carrier: self._epochs.get(carrier, 0) for carrier in racks}
        owners, is_published = self._owners_of(given, members), bool(carried) and carried == self._newest
        is_member, is_new, self._too_long = all(self._epochs.values()), owners != self._owners, ""
        is_due = plan is not None and any(map(any, owners.values())) and (is_new or not (is_published and is_member))
        if is_due and await self._publish(owners, is_new=is_new):
            is_published = False
        elif monotonic_s() - self._beat_s >= self._settings.heartbeat_s:
            for carrier in filter(self._epochs.get, CARRIERS):
                await self._beat(carrier)
        follows = self._owners_of(targets, members) == owners if is_published and owners == self._owners else None
        return self._see(found, members, targets, plan, follows)

    def _is_of_another(self, carried: list[str]) -> bool:
        """Return whether another autoscaler has this membership. After a restart, adopt the plan that it carries."""
        if carried and not self._racks:
            self._newest = carried
            self._racks.extend(carried)
            self._number, self._owners = join(carried)
        is_own = {*carried} <= {*self._carried, *self._racks}  # after it, any number of publications may have failed
        self._carried = carried if carried and is_own else self._carried
        return not is_own

    def _see(
        self,
        found: Any,
        members: Sequence[Member],
        targets: Mapping[str, Partitions],
        plan: PlanRecord | None,
        follows: bool | None,
    ) -> bool:
        """Update the view. follows: whether the target of the coordinator is the plan; None: it has none yet."""
        at_s, (epoch, target_epoch) = monotonic_s(), found[4:6]
        listed = [one for one in found[7] if one[0] not in CARRIERS]
        places = {one[0]: _partitions(one[8]) for one in listed}
        settled = bool(follows) and places == targets and {target_epoch} >= {epoch, *(one[3] for one in listed)}
        held = {(topic, number) for of in places.values() for topic, numbers in of.items() for number in numbers}
        for one in listed:
            if one[3] < target_epoch:  # it may still have what it must release, which the coordinator does not list
                for topic, numbers in self.view.places.get(one[0], {}).items():
                    kept = {number for number in numbers if (topic, number) not in held}
                    if kept:
                        places[one[0]][topic] = sorted({*places[one[0]].get(topic, ()), *kept})
        if self.view.epoch and self._counts[self._topic] > sum(topic == self._topic for topic, _ in held):
            self._free_s = self._free_s or at_s
        elif settled and self._free_s:
            self._pauses_s.put(at_s - self._free_s)
            self._free_s = 0.0
        done = plan.epoch if plan is not None and settled else self.view.epoch
        self.view = View(at_s, target_epoch, bool(follows), ASSIGNED, done, tuple(members), places)
        self.problem = self._too_long
        if plan is not None and epoch == target_epoch and follows is False:
            where = f"group {self._coordinator.group}, broker {self._coordinator.node}"
            self.problem = f"{where}: {found[6]!r} ignored the plan; install the assignor of this version there"
        return settled

    async def _publish(self, owners: Owners, *, is_new: bool) -> bool:
        """Return whether the plan was short enough. A retry repeats its rack ids."""
        if is_new:
            if not (racks := split(self._number + 1, owners)):
                self._too_long = f"too many members or partitions for {MOST_PARTS} rack ids; use fewer"
                return False
            self._number, self._newest = self._number + 1, racks
            self._racks.extend(racks)
            self._owners, self._published_s = owners, monotonic_s()
        for carrier, rack in reversed([*zip(CARRIERS, self._newest, strict=False)]):
            topic = f"tailpack-plan-{self._number if carrier == PLANNER else 'part'}"
            await self._beat(carrier, rack, [topic])
        await self._remove([Member(carrier) for carrier in self._epochs if carrier in CARRIERS[len(self._newest) :]])
        return True

    async def _beat(self, carrier: str, rack: str | None = None, topics: list[str] | None = None) -> None:
        epoch = self._epochs.get(carrier, 0)
        timeout_ms = -1 if epoch else round(wire.REQUEST_TIMEOUT_S * 1000)
        values: Any = carrier, epoch, None, rack, timeout_ms, topics, None, None, None if epoch else [], {}
        answer = await self._coordinator.send(wire.BEAT, *values)
        self._beat_s = monotonic_s()
        if answer.error_code in (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH):
            self._epochs[carrier] = 0
        elif (error := for_code(answer.error_code)) is not NoError:
            raise error(answer.message or self._coordinator.group)
        else:
            self._epochs[carrier] = answer.epoch

    def _member(self, one: Any) -> Member:
        topics = {*filter(None, one[6] or ())}
        with suppress(re.error):  # the brokers' syntax is RE2, which is nearly the same
            topics |= {self._topic} if one[7] and re.fullmatch(one[7], self._topic) else set()
        return Member(one[0], one[1] or "", one[4], one[5].lstrip("/"), Subscription(frozenset(topics)))

    def _owners_of(self, given: Mapping[str, Partitions], members: Sequence[Member]) -> Owners:
        """Return topic id → key of the owner of each partition."""
        owners = {topic: [b""] * count for topic, count in self._counts.items() if count and topic in self._ids}
        keys = {member.id: key_of(member.instance_id or member.id) for member in members}
        for member_id, topics in given.items():
            for topic, numbers in topics.items():
                of = owners.get(topic, [])
                for number in numbers:
                    if number < len(of):
                        of[number] = keys[member_id]
        return {self._ids[topic]: of for topic, of in owners.items()}


def _partitions(places: Any) -> Partitions:
    return {topic: sorted(numbers) for _, topic, numbers, _ in places[0] if topic}
