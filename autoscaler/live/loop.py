"""The live loop: ticks at fixed times of the wall clock, steps in between, and the warm-up before the first tick."""

import math
from collections.abc import Callable
from threading import Thread
from typing import Final

import numpy as np

from autoscaler.live.loads import SLOT_S
from autoscaler.model import Action, GroupObservation, PartitionLoad, Plan, RecentArrivals, Replica
from autoscaler.packing.owners import round_robin
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import Policy
from contracts.clock import monotonic_s, wall_offset_s
from contracts.waiting import Stop

STEP_S: Final = 0.02
"""Pause between two steps. It delays the reaction to a replica that dies or drains, in addition to writing the plan."""
MIN_CLOCK_JUMP_S: Final = 0.25
"""Smallest movement of the wall clock between two ticks that counts as a jump. NTP moves it by milliseconds."""
SURGE_FACTOR: Final = 3.0
"""Arrivals at the peak of the warm-up, as a multiple of one replica's service rate."""
WARM_UP_RATE: Final = 100.0  # service rate (μ) in the warm-up, events/s
MAX_WARM_UP_TICKS: Final = 60


def next_tick_s(now_s: float, interval_s: float, offset_s: float) -> float:
    """Return the first k × interval + offset after `now_s`. Missed ticks are skipped.

    >>> next_tick_s(10.05, interval_s=1.0, offset_s=0.1)
    10.1
    """
    return (math.floor((now_s - offset_s) / interval_s) + 1) * interval_s + offset_s


class Loop:
    """Calls `tick` on schedule and `advance` in between until `stop` is set.

    Durations use the monotonic clock. The wall clock only schedules ticks. After a jump of the wall clock, the next
    tick is 0.5 to 1.5 intervals after the last one and follows the schedule again.
    urgent: returns after each `advance` whether to tick at once. Such a tick does not change the schedule.
    on_clock_jump: called before each tick with the jump of the wall clock since the last tick, seconds; 0: none.
    """

    def __init__(
        self,
        tick: Callable[[], None],
        advance: Callable[[], object],
        *,
        interval_s: float,
        offset_s: float,
        stop: Stop,
        urgent: Callable[[], bool] = lambda: False,
        on_clock_jump: Callable[[float], None] = lambda by_s: None,
        clock: Callable[[], float] = monotonic_s,
        ahead_s: Callable[[], float] = wall_offset_s,
    ) -> None:
        self._tick, self._advance, self._urgent, self._on_clock_jump = tick, advance, urgent, on_clock_jump
        self._interval_s, self._offset_s, self._stop = interval_s, offset_s, stop
        self._clock, self._read_ahead_s = clock, ahead_s
        self._ahead_s, self._last_tick_s = ahead_s(), clock()
        self.ticks = 0

    def run(self) -> None:
        """Tick and advance until `stop` is set. An exception of `tick` or `advance` ends the loop."""
        due_s = self._schedule_after(self._clock())
        while not self._stop.wait(max(0.0, min(STEP_S, due_s - self._clock()))):
            if self._clock() >= due_s:
                ahead_s = self._read_ahead_s()
                by_s, self._ahead_s = ahead_s - self._ahead_s, ahead_s
                self._on_clock_jump(by_s if abs(by_s) >= MIN_CLOCK_JUMP_S else 0.0)
                self._tick_now()
                following_s = self._schedule_after(due_s + self._interval_s / 2)
                is_missed = following_s <= self._last_tick_s
                due_s = self._schedule_after(self._last_tick_s) if is_missed else following_s
            self._advance()
            if self._urgent():
                self._tick_now()

    def _tick_now(self) -> None:
        self._tick()
        self.ticks += 1
        self._last_tick_s = self._clock()

    def last_tick(self) -> tuple[int, float]:
        """Return the number of ticks and the age of the last one, seconds."""
        return self.ticks, self._clock() - self._last_tick_s

    def _schedule_after(self, at_s: float) -> float:
        return next_tick_s(at_s + self._ahead_s, self._interval_s, self._offset_s) - self._ahead_s


def run_beside(work: Callable[[], object], step: Callable[[], object]) -> None:
    """Run `work` in a thread until it has ended, and `step` meanwhile, again and again."""
    thread = Thread(target=work, name="warm-up")
    thread.start()
    while thread.is_alive():
        step()
        thread.join(STEP_S)


def warm_up_policy(policy: Policy, partitions: int, interval_s: float, done: Callable[[], bool] = bool) -> None:
    """Run a throw-away policy through a synthetic surge, so that Numba compiles before the first real decision.

    It ends after a scale-up and a scale-down, after 60 ticks, when `done` returns true, or when the policy fails.
    This failure is not reported here: the first real tick reports it.
    """
    plan, actions = Plan((f"{REPLICA_PREFIX}-0",), None), set[Action]()
    weights = np.arange(1, partitions + 1) / (partitions * (partitions + 1) / 2)  # uneven load
    slots = np.zeros((max(1, round(interval_s / SLOT_S)), partitions), np.int64)
    for tick in range(MAX_WARM_UP_TICKS):
        if done() or {Action.UP, Action.DOWN} <= actions:
            return
        arriving = 0 if Action.UP in actions else min(SURGE_FACTOR, tick / 4) * WARM_UP_RATE * interval_s
        slots[-1] = np.floor(arriving * weights)  # all arrive in the last slot
        loads = enumerate(slots[-1].tolist())
        observation = GroupObservation(
            at_s=tick * interval_s,
            partitions=tuple(PartitionLoad(number, events / interval_s, events) for number, events in loads),
            replicas=tuple(Replica(name, ready=True) for name in plan.replicas),
            assignment=plan.assignment or round_robin(plan.replicas, partitions),
            service_rate=WARM_UP_RATE,
            rebalance_time_s=0.0,
            recent=RecentArrivals(SLOT_S, slots.copy()),
        )
        try:
            decision = policy.decide(observation)
        except Exception:  # the first real tick reports it
            return
        if decision.fault:
            return
        actions.add(decision.action)
        plan = decision.plan
