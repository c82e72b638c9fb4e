"""What must hold at every moment, whatever goes wrong. Knows the brokers' truth, and shares nothing with a replica."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from theory.rebalance.cluster import Cluster, Record
from theory.rebalance.group import NONE, REBALANCE_IN_PROGRESS, Member
from theory.rebalance.processes import Process

from contracts.events import Timeline
from services.common.fence import Fence

IGNORED_VIOLATIONS: tuple[str, ...] = ()
"""Words of violations that are let pass: a planted fault may break more than one thing."""
GAP: Final = 1 / 3
"""Share of a session: who stood still for longer asks first whether it is a member."""
WINDOW_S: Final = 0.6
"""What a fault may have repeated: events that were begun so long before it at most. They wait for the next commit."""
SLACK_S: Final = 1e-3
"""What a process may take between looking at its lease and starting an event."""


class ViolationError(Exception):
    """Something that must never happen has happened."""


class Checks:
    """Told of each event that starts, each answer, record and commit. What must not be ends the run: ViolationError."""

    def __init__(self, cluster: Cluster, session_s: float) -> None:
        self.world = cluster.world
        self.cluster = cluster
        self.session_s = session_s
        self.faults: list[tuple[float, str]] = []
        self.repeated = 0
        self.output: dict[int, int] = defaultdict(int)
        """Partition → offset after the last event whose output is there, all before it included."""
        self.begun: dict[int, dict[int, float]] = defaultdict(dict)
        """Partition → offset → when it was started last."""
        self._proof_s: dict[Process, float] = {}
        self._fence = Fence()
        """The next stage's own."""
        self._newest: dict[tuple[int, int], int] = {}
        """Partition, offset → the newest generation that has written its output."""
        self._done: dict[tuple[Process, int], int] = {}
        self._told: dict[Process, set[int]] = {}
        self._listening: dict[Process, str] = {}
        self._removed: dict[str, str] = {}
        cluster.network.answered = self._answered
        cluster.committing = self._commits
        cluster.appended = self._written
        cluster.group.removed = self._forgets

    def fault(self, what: str) -> None:
        """Something goes wrong from now on."""
        self.faults.append((self.world.now_s, what))

    def starts(self, process: Any, partition: int, offset: int) -> None:
        """A replica starts to work on an event."""
        now_s, begun = self.world.now_s, self.begun[partition]
        what = f"{process.name} starts event {offset} of partition {partition}"
        silent_s = now_s - self._proof_s.get(process, float("-inf"))
        if silent_s > self.session_s + SLACK_S:
            self._fail(f"{what} {silent_s:.3f} s after it last asked whether it is a member: its lease is out")
        if self._proof_s.get(process, 0.0) < process.stood_still_s:
            self._fail(f"{what}, having stood still, before it has asked whether it is a member")
        if offset > max(begun, default=-1) + 1:
            self._fail(f"{what}, but begun are only those before {max(begun, default=-1) + 1}: events are skipped")
        known = process.member_id in self.cluster.group.members
        if not known and (why := self._removed.get(process.member_id)) in ("session", "rebalance"):
            self._fail(f"{what}, which others may have: its {why} time-out has run out")
        if known:
            if offset < self.cluster.committed.get(partition, 0):
                self._fail(f"{what}, but {self.cluster.committed[partition]} is committed: done twice for nothing")
            others = [each for each in self.world.processes if each is not process and not each.is_dead]
            for other in others:
                if partition in other.partitions and other.member_id in self.cluster.group.members:
                    self._fail(f"{what}, and so does {other.name}: two members have the same partition")
        if offset in begun:
            self.repeated += 1
            excused = any(at_s <= now_s and begun[offset] >= at_s - WINDOW_S for at_s, _ in self.faults)
            if not excused:
                self._fail(f"{what} again, begun {now_s - begun[offset]:.3f} s ago, without a fault to blame")
        begun[offset] = now_s
        self._done[process, partition] = offset + 1

    def on_listener(self, process: Any, what: str, partitions: Sequence[int]) -> None:
        """A replica's listener is called ("taken", "released", "lost"), or returns ("")."""
        if process.is_dead:
            return
        busy, held = self._listening.get(process, ""), self._told.setdefault(process, set())
        if what and busy:
            self._fail(f"{process.name} tells {what} {list(partitions)} while {busy} is being told")
        self._listening[process] = what
        if what == "taken":
            held.update(partitions)
            self._done.update({(process, p): 0 for p in partitions})
        elif what:
            if strangers := set(partitions) - held:
                self._fail(
                    f"{process.name} tells {what} of partitions {sorted(strangers)} which it was not told to have"
                )
            held.difference_update(partitions)
        for p in partitions if what == "released" else ():
            done = self._done.get((process, p), 0)
            if self.cluster.committed.get(p, 0) < done:
                committed = self.cluster.committed.get(p, 0)
                self._fail(f"{process.name} tells released of partition {p}, done to {done}, committed to {committed}")

    def unrest(self) -> str:
        """Return what is not yet as it should be once nothing goes wrong any more; empty: all is well."""
        ends = {p: len(log.records) for (topic, p), log in self.cluster.logs.items() if topic == "events"}
        late = [p for p, end in ends.items() if self.output[p] < end]
        if late:
            return f"partitions {late} are not served"
        held = [p for p, end in ends.items() if self.cluster.committed.get(p, 0) < end]
        return f"partitions {held} are not committed" if held else ""

    def _fail(self, what: str) -> None:
        if not any(known in what for known in IGNORED_VIOLATIONS):
            self.world.broken = self.world.broken or ViolationError(what)

    def _answered(self, process: Process, request: Any, answer: Any, sent_s: float) -> None:
        kind = type(request).__name__.partition("Request_")[0]
        if kind in ("Heartbeat", "JoinGroup", "SyncGroup"):
            proves = answer.error_code in ((NONE, REBALANCE_IN_PROGRESS) if kind == "Heartbeat" else (NONE,))
        elif kind == "OffsetCommit":
            proves = all(error == NONE for _, parts in answer.topics for _, error in parts)
        else:
            return
        if proves:
            self._proof_s[process] = max(sent_s, self._proof_s.get(process, float("-inf")))

    def _commits(self, member_id: str, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            what = f"{member_id} commits {offset} of partition {partition}"
            before = self.cluster.committed.get(partition, 0)
            if offset < before:
                self._fail(f"{what}: the committed offset {before} goes back")
            if offset > self.output[partition]:
                self._fail(f"{what}, with output to {self.output[partition]}")

    def _written(self, topic: str, partition: int, record: Record) -> None:
        if topic != "output" or record.value is None:
            return
        origin, offset, generation, epoch = map(int, record.value.split(b":"))
        what = f"output of event {offset} of partition {origin} (generation {generation})"
        if offset > self.output[origin]:
            self._fail(f"{what} comes before that of {self.output[origin]}")
        token = Timeline(
            intended_us=0, placed_us=0, partition=origin, offset=offset, generation=generation, epoch=epoch
        )
        is_admitted, newest = self._fence.admits(partition, token), self._newest.get((origin, offset), -1)
        if is_admitted and newest > generation:
            self._fail(f"{what} is accepted, but generation {newest} has written it already: a zombie's")
        if not is_admitted and newest < 0:
            self._fail(f"{what} is refused, and nobody else has written it")
        self._newest[origin, offset] = max(newest, generation)
        self.output[origin] = max(self.output[origin], offset + 1)

    def _forgets(self, member: Member, why: str) -> None:
        self._removed[member.id] = why
