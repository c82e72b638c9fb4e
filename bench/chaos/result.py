"""What came of many schedules."""

import msgspec


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
