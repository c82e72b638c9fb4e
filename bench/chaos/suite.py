"""One schedule on a running pipeline: faults under load, then all is well again, then everything is checked.

And what came of many schedules.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.chaos import checker
from bench.chaos.evidence import Reader
from bench.chaos.faults import BROKERS, ON_BROKERS, SESSION_S, Fault, Kind
from bench.chaos.inject import Injector
from bench.chaos.load import Load
from bench.chaos.world import World

RECOVERY_S: Final = 30.0
"""Stated: after the last fault every partition serves within it, and the newest plan is in force."""
DRAINED_S: Final = 30.0
"""Deadline of what was accepted before, from then on."""
WHOLE_S: Final = 60.0
"""For brokers that were killed: until every copy is up to date. It is not the pipeline's to hasten."""
LOST_S: Final = SESSION_S + 2.0
"""From when a member's requests go unanswered until the others have a generation without it."""
STEP_S: Final = 0.05
SETTLED_S: Final = 0.3
"""What is still on its way when the last effect has been seen would double it."""


class Schedule(msgspec.Struct, kw_only=True):
    """One schedule and what was found after it. Each violation is a sentence."""

    seed: int
    faults: tuple[str, ...]
    events: int = 0
    """Orders that were accepted."""
    recovery_s: float = 0.0
    """After the last fault, until every partition had served an order that was accepted since."""
    not_done: tuple[str, ...] = ()
    """Faults that could not be carried out, and why."""
    lost: list[str] = []
    duplicated: list[str] = []
    order_violations: list[str] = []
    offset_regressions: list[str] = []
    zombie_events: list[str] = []
    wrongly_killed: list[str] = []
    others: list[str] = []
    """A partition that did not advance in time, a plan that is not the newest, a replica that failed."""
    logs: str = ""
    """Where the logs of a schedule with violations are kept."""

    @property
    def violations(self) -> list[str]:
        """All of them."""
        return [sentence for name in (*COUNTED, "others") for sentence in getattr(self, name)]


COUNTED = ("lost", "duplicated", "order_violations", "offset_regressions", "zombie_events", "wrongly_killed")


class Outcome(msgspec.Struct, kw_only=True):
    """All schedules of one command."""

    schedules: int
    """That came to their end."""
    faults: int
    events: int
    lost: int
    duplicated: int
    order_violations: int
    offset_regressions: int
    zombie_events: int
    wrongly_killed: int
    violations: int
    """Of all kinds: those above, partitions that did not advance in time, replicas that failed, plans too old."""
    worst_recovery_s: float
    left_out: tuple[str, ...]
    """Kinds of faults that cannot be had here, each with its reason."""
    failed: tuple[Schedule, ...]
    """Schedules with violations: `--schedules 1 --seed SEED` repeats one."""


def outcome(schedules: list[Schedule], left_out: tuple[str, ...]) -> Outcome:
    """Add the schedules up."""
    return Outcome(
        schedules=len(schedules),
        faults=sum(len(one.faults) for one in schedules),
        events=sum(one.events for one in schedules),
        **{name: sum(len(getattr(one, name)) for one in schedules) for name in COUNTED},
        violations=sum(len(one.violations) for one in schedules),
        worst_recovery_s=round(max((one.recovery_s for one in schedules), default=0.0), 2),
        left_out=left_out,
        failed=tuple(one for one in schedules if one.violations),
    )


class Pipeline:
    """One pipeline under test through many schedules. Main thread only."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._reader = Reader(world.bootstrap_servers, world.namespace)
        self._disturbed: set[str] = set()
        """Replicas that this schedule, or the one before, has done something to: some act late on that."""
        self._outages: list[tuple[float, float]] = []
        """From when to when a broker was disturbed, seconds since the epoch."""
        self._known: set[str] = set()
        """Violations that were told already."""

    def run(self, seed: int, faults: tuple[Fault, ...], say: Callable[[str], None]) -> Schedule:
        """Carry a schedule out and check; whatever happens, no fault and no load goes on afterwards."""
        found = Schedule(seed=seed, faults=tuple(map(str, faults)))
        injector = Injector(self._world, self._leader)
        brokers_well = not any(one.kind in ON_BROKERS for one in faults)
        began_s, ends = time.time(), len(self._reader.found.ends)
        before, self._disturbed = self._disturbed, injector.disturbed
        load = Load(self._world, f"{self._world.namespace}-{seed}", seed)
        try:
            self._act(faults, injector, say)
            say("all is well again")
            injector.end_all()
            self._until_whole()
            if not brokers_well:
                self._outages.append((began_s, time.time()))
            self._recover(load, found)
        finally:
            injector.end_all()
            load.finish()
        found.events, found.not_done = len(load.accepted), tuple(injector.said)
        if any(one.kind is Kind.RIVAL for one in faults):  # two processes of one name: nobody can tell them apart
            self._disturbed |= {name for name in self._reader.reports if name.startswith("payment-")}
        say("checked")
        strangers = self._world.strangers()
        self._drain(set(load.accepted))
        still = self._world.strangers()  # twice: one that is just being started is none
        found.others += [f"{still[pid]} runs as {pid}, and nobody knows of it" for pid in still if pid in strangers]
        new = self._reader.found.ends[ends:]
        found.wrongly_killed = checker.wrongly_killed(new, before | self._disturbed)
        found.order_violations = checker.out_of_order(self._reader.found.settled, before | self._disturbed, began_s)
        found.others += checker.ended_by_itself(new) if brokers_well else []
        self._check(set(load.accepted), found)
        return found

    def close(self) -> None:
        """Leave the brokers."""
        self._reader.close()

    def _act(self, faults: tuple[Fault, ...], injector: Injector, say: Callable[[str], None]) -> None:
        began_s = time.monotonic()
        ahead = list(faults)
        while ahead or injector.going:
            while ahead and time.monotonic() - began_s >= ahead[0].at_s:
                say(str(ahead[0]))
                injector.begin(ahead.pop(0))
            injector.end_due()
            self._step()
        if any(one.kind is Kind.DELETED for one in faults):
            self._reader.renew()

    def _step(self) -> None:
        self._world.supervise()
        self._reader.poll(STEP_S)

    def _until_whole(self) -> None:
        """Wait until every broker has every copy: the next schedule may take another one away."""
        give_up_s = time.monotonic() + WHOLE_S
        client = AdminClient({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0})
        while time.monotonic() < give_up_s:
            self._step()
            try:
                topics = client.list_topics(timeout=2).topics.values()
            except KafkaException:
                continue
            if all(len(one.isrs) == BROKERS for topic in topics for one in topic.partitions.values()):
                return

    def _recover(self, load: Load, found: Schedule) -> None:
        """Wait until every partition serves orders accepted from now on, and every replica has the newest plan."""
        well_s = time.monotonic()
        wanted = set(range(self._world.partitions))
        epoch, advanced = self._reader.epoch, False
        while time.monotonic() < well_s + RECOVERY_S:
            self._step()
            told = set(self._reader.found.notified)
            since = {order for order, at_s in load.accepted.copy().items() if at_s > well_s and order in told}
            advanced = {load.partition_of[order] for order in since if order in load.partition_of} >= wanted
            epoch = max(epoch, self._reader.epoch)
            if advanced and not self._behind(epoch):
                found.recovery_s = round(time.monotonic() - well_s, 2)
                return
        found.recovery_s = RECOVERY_S
        if not advanced:
            found.others.append(f"some partition served nothing for {RECOVERY_S:g} s after the last fault")
        found.others += self._behind(epoch)

    def _behind(self, epoch: int) -> list[str]:
        """Say which living replica does not serve under this plan, or a newer one."""
        running = self._world.processes()
        reports = {name: told for name, told in self._reader.reports.items() if told["pid"] == running.get(name)}
        return [
            f"{name} serves under plan {told['assigned_epoch']}, and {epoch} is the newest"
            for name, told in reports.items()
            if told["state"] == "member" and int(told["assigned_epoch"]) < epoch
        ]

    def _drain(self, accepted: set[str]) -> None:
        give_up_s = time.monotonic() + DRAINED_S
        while self._reader.unserved(accepted) and time.monotonic() < give_up_s:
            self._step()
        enough_s = time.monotonic() + SETTLED_S
        while time.monotonic() < enough_s:
            self._step()

    def _check(self, accepted: set[str], found: Schedule) -> None:
        """Check what a schedule may bring to light about an earlier one, too; each violation is told once."""
        seen = self._reader.found
        losses = checker.losses(seen.members, LOST_S)
        sentences = {
            "lost": checker.lost(accepted, seen),
            "duplicated": checker.doubled(seen),
            "offset_regressions": checker.regressed(seen.commits, [*self._outages, *losses]),
            "zombie_events": checker.zombies(seen.settled, seen.members),
        }
        for name, said in sentences.items():
            setattr(found, name, [one for one in said if one not in self._known])
        self._known |= {one for each in sentences.values() for one in each}

    def _leader(self) -> str:
        members = self._reader.found.members
        return members[-1].leader if members else ""
