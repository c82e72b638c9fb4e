"""Run a schedule on a pipeline: faults under load, recovery, checks. Sum up the results of several schedules."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from chaos_suite import checker
from chaos_suite.evidence import Reader
from chaos_suite.faults import BROKERS, ON_BROKERS, SESSION_S, Fault, Kind, Variant
from chaos_suite.inject import Injector
from chaos_suite.load import Load
from chaos_suite.world import World

RECOVERY_S: Final = 30.0
"""Maximum time (s) after the last fault until every partition is served and the newest plan is in force."""
DRAINED_S: Final = 30.0
"""Maximum time (s) after the recovery until all accepted orders have their effects."""
WHOLE_S: Final = 60.0
"""Maximum time (s) until all copies on a killed broker are up to date."""
LOST_S: Final = SESSION_S + 2.0
"""Maximum time (s) from a member's first unanswered request until the group has a generation without it."""
STEP_S: Final = 0.05
SETTLED_S: Final = 0.3
"""Time (s) to wait after the last effect, because a second effect may be on its way."""
COUNTED: Final = ("lost", "duplicated", "order_violations", "offset_regressions", "zombie_events", "wrongly_killed")


@dataclass(kw_only=True)
class Schedule:
    """One schedule, and a sentence for each violation."""

    seed: int
    faults: tuple[str, ...]
    events: int = 0
    """Number of accepted orders."""
    recovery_s: float = 0.0
    """Time (s) from the last fault until every partition had served an order accepted after it."""
    not_done: tuple[str, ...] = ()
    """Faults that had no effect or could not be ended, with reasons. The schedule then does not count."""
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    order_violations: list[str] = field(default_factory=list)
    offset_regressions: list[str] = field(default_factory=list)
    zombie_events: list[str] = field(default_factory=list)
    wrongly_killed: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Partitions that did not advance in time, plans that are not the newest, replicas that failed."""
    logs: str = ""

    @property
    def violations(self) -> list[str]:
        return [sentence for name in (*COUNTED, "others") for sentence in getattr(self, name)]


def outcome(schedules: list[Schedule], left_out: tuple[str, ...]) -> dict[str, Any]:
    """Return the sums over schedules, for other programs. A schedule counts if each of its faults took effect."""
    uncounted = [schedule for schedule in schedules if not schedule.violations]
    not_counted = [f"seed {schedule.seed}: {why}" for schedule in uncounted for why in schedule.not_done[:1]]
    return {
        "schedules": len(schedules) - len(not_counted),
        "not_counted": not_counted,
        "faults": sum(len(schedule.faults) - len(schedule.not_done) for schedule in schedules),
        "events": sum(schedule.events for schedule in schedules),
        **{name: sum(len(getattr(schedule, name)) for schedule in schedules) for name in COUNTED},
        "violations": sum(len(schedule.violations) for schedule in schedules),
        "worst_recovery_s": round(max((schedule.recovery_s for schedule in schedules), default=0.0), 2),
        "left_out": left_out,
        "failed": [asdict(schedule) for schedule in schedules if schedule.violations],
    }


class Pipeline:
    """A pipeline on which many schedules are run. It may only be used in the main thread."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._reader = Reader(world.bootstrap_servers, world.namespace)
        self._disturbed: set[str] = set()
        """Replicas that this schedule or the one before disturbed, because effects may be delayed."""
        self._outages: list[tuple[float, float]] = []
        """Spans in which a broker was disturbed, seconds since 1970."""
        self._known: set[str] = set()
        """Violations that were reported already."""

    def run(
        self, seed: int, faults: tuple[Fault, ...], report: Callable[[str], None], variant: Variant = Variant.SHORT
    ) -> Schedule:
        """Run a schedule, then check the guarantees. All faults and the load end before this function returns."""
        with self._world.throttled() if variant is Variant.THROTTLED else nullcontext():
            return self._run(seed, faults, report, is_compressed=variant is Variant.COMPRESSED)

    def _run(
        self, seed: int, faults: tuple[Fault, ...], report: Callable[[str], None], *, is_compressed: bool
    ) -> Schedule:
        found = Schedule(seed=seed, faults=tuple(map(str, faults)))
        injector = Injector(self._world, self._reader)
        on_brokers = any(fault.kind in ON_BROKERS for fault in faults)
        began_s, ends = time.time(), len(self._reader.found.ends)
        before, self._disturbed = self._disturbed, injector.disturbed
        load = Load(self._world, f"{self._world.namespace}-{seed}", seed, is_compressed=is_compressed)
        try:
            self._act(faults, injector, report)
            report("recovery")
            injector.end()
            self._until_whole()
            if on_brokers:
                self._outages.append((began_s, time.time()))
            self._recover(load, found)
        finally:
            injector.end()
            load.finish()
        found.events, found.not_done = len(load.accepted), tuple(injector.not_done)
        # two processes share each name, so both may be disturbed
        if any(fault.kind is Kind.RIVAL for fault in faults):
            self._disturbed |= {name for name in self._reader.reports if name.startswith("payment-")}
        report("checks")
        strangers = self._world.strangers()
        self._drain(set(load.accepted))
        still = self._world.strangers()  # twice: a process that is just being started is no stranger
        found.others += [f"{still[pid]} runs as {pid} and is not supervised" for pid in still if pid in strangers]
        new = self._reader.found.ends[ends:]
        found.wrongly_killed = checker.wrongly_killed(new, before | self._disturbed)
        found.order_violations = checker.out_of_order(self._reader.found.settled, before | self._disturbed, began_s)
        found.others += [] if on_brokers else checker.ended_by_itself(new)
        self._check(set(load.accepted), found)
        return found

    def close(self) -> None:
        self._reader.close()

    def _act(self, faults: tuple[Fault, ...], injector: Injector, report: Callable[[str], None]) -> None:
        began_s = time.monotonic()
        ahead = list(faults)
        while ahead or injector.going:
            while ahead and time.monotonic() - began_s >= ahead[0].at_s:
                report(str(ahead[0]))
                injector.begin(ahead.pop(0))
            injector.end(time.monotonic())
            self._step()
        if any(fault.kind is Kind.DELETED for fault in faults):
            self._reader.renew()

    def _step(self) -> None:
        self._world.supervise()
        self._reader.poll(STEP_S)

    def _step_until(self, condition: Callable[[], bool], within_s: float) -> bool:
        """Supervise processes and read records until the condition holds; return False after the time."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            self._step()
            if condition():
                return True
        return False

    def _until_whole(self) -> None:
        """Wait until every broker has every copy, because the next schedule may stop another broker."""
        client = AdminClient({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0})

        def whole() -> bool:
            try:
                topics = client.list_topics(timeout=2).topics.values()
            except KafkaException:
                return False
            return all(len(partition.isrs) == BROKERS for topic in topics for partition in topic.partitions.values())

        self._step_until(whole, WHOLE_S)

    def _recover(self, load: Load, found: Schedule) -> None:
        """Wait until new orders are served on every partition, and every replica has the newest plan."""
        began_s = time.monotonic()
        epoch = 0

        def advanced() -> bool:
            notified = set(self._reader.found.notified)
            since = {order for order, at_s in load.accepted.copy().items() if at_s > began_s and order in notified}
            served = {load.partition_of[order] for order in since if order in load.partition_of}
            return served >= set(range(self._world.partitions))

        def recovered() -> bool:
            nonlocal epoch
            epoch = max(epoch, self._reader.epoch)
            return advanced() and not self._behind(epoch)

        if self._step_until(recovered, RECOVERY_S):
            found.recovery_s = round(time.monotonic() - began_s, 2)
            return
        found.recovery_s = RECOVERY_S
        if not advanced():
            found.others.append(f"some partition served nothing for {RECOVERY_S:g} s after the last fault")
        found.others += self._behind(epoch)

    def _behind(self, epoch: int) -> list[str]:
        """Return a sentence for each running member whose plan is older than `epoch`."""
        running = self._world.processes()
        return [
            f"{name} serves under plan {report['assigned_epoch']}, and {epoch} is the newest"
            for name, report in self._reader.reports.items()
            if report["pid"] == running.get(name)
            and report["state"] == "member"
            and int(report["assigned_epoch"]) < epoch
        ]

    def _drain(self, accepted: set[str]) -> None:
        self._step_until(lambda: accepted <= set(self._reader.found.notified), DRAINED_S)
        self._step_until(lambda: False, SETTLED_S)

    def _check(self, accepted: set[str], found: Schedule) -> None:
        """Check all evidence, because a violation of an earlier schedule may appear now. Each is reported once."""
        evidence = self._reader.found
        losses = checker.losses(evidence.members, LOST_S)
        sentences = {
            "lost": checker.lost(accepted, evidence),
            "duplicated": checker.doubled(evidence),
            "offset_regressions": checker.regressed(evidence.commits, [*self._outages, *losses]),
            "zombie_events": checker.zombies(evidence.settled, evidence.members),
        }
        for name, each in sentences.items():
            setattr(found, name, [sentence for sentence in each if sentence not in self._known])
            self._known.update(each)
