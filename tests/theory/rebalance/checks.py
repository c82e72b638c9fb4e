"""Invariants that hold at every moment, whatever fails. They use the brokers' state, and no state of a replica."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from theory.rebalance.cluster import Cluster, Record
from theory.rebalance.group import NONE, REBALANCE_IN_PROGRESS, Member
from theory.rebalance.processes import Process

from contracts.events import Timeline
from services.common.fence import Fence

IGNORED_VIOLATIONS: tuple[str, ...] = ()
"""Words of violations that are ignored, because a planted fault may violate more than one invariant."""
MAX_GAP_SESSIONS: Final = 1 / 3
"""Share of a session after which a process that stood still must prove its membership before it starts an event."""
MAX_REPEAT_AGE_S: Final = 0.6
"""A fault may repeat events that were begun at most this long before it, because they wait for the next commit."""
START_SLACK_S: Final = 1e-3
"""Longest time of a process between the check of its lease and the start of an event."""


class ViolationError(Exception):
    """An invariant is violated."""


class Checks:
    """Checks each started event, answer, record and commit. A violation ends the run with ViolationError."""

    def __init__(self, cluster: Cluster, session_s: float) -> None:
        self.sim = cluster.sim
        self.cluster = cluster
        self.session_s = session_s
        self.faults: list[tuple[float, str]] = []
        self.repeated = 0
        self.output: dict[int, int] = defaultdict(int)
        """Partition → first offset without an output."""
        self.begun: dict[int, dict[int, float]] = defaultdict(dict)
        """Partition → offset → time of its last start."""
        self._proof_s: dict[Process, float] = {}
        self._fence = Fence()
        """The fence of the next stage."""
        self._newest: dict[tuple[int, int], int] = {}
        """(Partition, offset) → newest generation that has written its output."""
        self._done: dict[tuple[Process, int], int] = {}
        self._announced: dict[Process, set[int]] = {}
        self._listener_calls: dict[Process, str] = {}
        self._removed: dict[str, str] = {}
        cluster.network.on_answer = self._check_answer
        cluster.on_commit = self._check_commit
        cluster.on_append = self._check_output
        cluster.group.on_removed = self._note_removal

    def record_fault(self, what: str) -> None:
        """Note a fault that begins now."""
        self.faults.append((self.sim.now_s, what))

    def on_start(self, process: Any, partition: int, offset: int) -> None:
        """Check the start of an event by a replica."""
        now_s, begun = self.sim.now_s, self.begun[partition]
        what = f"{process.name} starts event {offset} of partition {partition}"
        proof_age_s = now_s - self._proof_s.get(process, float("-inf"))
        if proof_age_s > self.session_s + START_SLACK_S:
            self._report(f"{what} {proof_age_s:.3f} s after its last proof of membership: its lease is expired")
        if self._proof_s.get(process, 0.0) < process.stood_still_s:
            self._report(f"{what}, having stood still, before a new proof of membership")
        if offset > max(begun, default=-1) + 1:
            self._report(f"{what}, but only events before {max(begun, default=-1) + 1} were begun: events are skipped")
        known = process.member_id in self.cluster.group.members
        if not known and (why := self._removed.get(process.member_id)) in ("session", "rebalance"):
            self._report(f"{what}, which others may own: its {why} time-out has expired")
        if known:
            if offset < self.cluster.committed.get(partition, 0):
                self._report(f"{what}, but {self.cluster.committed[partition]} is committed: a needless repeat")
            others = [each for each in self.sim.processes if each is not process and not each.is_dead]
            for other in others:
                if partition in other.partitions and other.member_id in self.cluster.group.members:
                    self._report(f"{what}, which {other.name} serves too: two members own the same partition")
        if offset in begun:
            self.repeated += 1
            has_cause = any(at_s <= now_s and begun[offset] >= at_s - MAX_REPEAT_AGE_S for at_s, _ in self.faults)
            if not has_cause:
                self._report(f"{what} again, begun {now_s - begun[offset]:.3f} s ago, without a fault as the cause")
        begun[offset] = now_s
        self._done[process, partition] = offset + 1

    def on_listener(self, process: Any, what: str, partitions: Sequence[int]) -> None:
        """Check a call of a replica's listener ("taken", "released" or "lost"), or its return ("")."""
        if process.is_dead:
            return
        running_call, owned = self._listener_calls.get(process, ""), self._announced.setdefault(process, set())
        if what and running_call:
            self._report(f"{process.name} announces {what} {list(partitions)} during a call of {running_call}")
        self._listener_calls[process] = what
        if what == "taken":
            owned.update(partitions)
            self._done.update({(process, p): 0 for p in partitions})
        elif what:
            if unannounced := set(partitions) - owned:
                self._report(
                    f"{process.name} announces {what} for partitions {sorted(unannounced)}, not announced as taken"
                )
            owned.difference_update(partitions)
        for p in partitions if what == "released" else ():
            done = self._done.get((process, p), 0)
            if self.cluster.committed.get(p, 0) < done:
                committed = self.cluster.committed.get(p, 0)
                self._report(f"{process.name} announces released for partition {p} at {done}, committed to {committed}")

    def pending_work(self) -> str:
        """Return which partitions are not served or committed to their ends. Empty: none."""
        ends = {p: len(log.records) for (topic, p), log in self.cluster.logs.items() if topic == "events"}
        late = [p for p, end in ends.items() if self.output[p] < end]
        if late:
            return f"partitions {late} are not served"
        owned = [p for p, end in ends.items() if self.cluster.committed.get(p, 0) < end]
        return f"partitions {owned} are not committed" if owned else ""

    def _report(self, what: str) -> None:
        if not any(known in what for known in IGNORED_VIOLATIONS):
            self.sim.violation = self.sim.violation or ViolationError(what)

    def _check_answer(self, process: Process, request: Any, answer: Any, sent_s: float) -> None:
        kind = type(request).__name__.partition("Request_")[0]
        if kind in ("Heartbeat", "JoinGroup", "SyncGroup"):
            proves = answer.error_code in ((NONE, REBALANCE_IN_PROGRESS) if kind == "Heartbeat" else (NONE,))
        elif kind == "OffsetCommit":
            proves = all(error == NONE for _, parts in answer.topics for _, error in parts)
        else:
            return
        if proves:
            self._proof_s[process] = max(sent_s, self._proof_s.get(process, float("-inf")))

    def _check_commit(self, member_id: str, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            what = f"{member_id} commits {offset} of partition {partition}"
            before = self.cluster.committed.get(partition, 0)
            if offset < before:
                self._report(f"{what}: the committed offset {before} goes back")
            if offset > self.output[partition]:
                self._report(f"{what}, with output to {self.output[partition]}")

    def _check_output(self, topic: str, partition: int, record: Record) -> None:
        if topic != "output" or record.value is None:
            return
        origin, offset, generation, epoch = map(int, record.value.split(b":"))
        what = f"output of event {offset} of partition {origin} (generation {generation})"
        if offset > self.output[origin]:
            self._report(f"{what} comes before that of {self.output[origin]}")
        token = Timeline(
            intended_us=0, placed_us=0, partition=origin, offset=offset, generation=generation, epoch=epoch
        )
        is_admitted, newest = self._fence.admits(partition, token), self._newest.get((origin, offset), -1)
        if is_admitted and newest > generation:
            self._report(f"{what} is accepted, but generation {newest} has written it already")
        if not is_admitted and newest < 0:
            self._report(f"{what} is refused, but no other generation has written it")
        self._newest[origin, offset] = max(newest, generation)
        self.output[origin] = max(self.output[origin], offset + 1)

    def _note_removal(self, member: Member, why: str) -> None:
        self._removed[member.id] = why
