"""The live loop: a rehearsal, then ticks on the beat of the wall clock, and in between the steps that are due."""

import math
from collections.abc import Callable
from threading import Event
from typing import Final

import numpy as np

from autoscaler.model import Action, GroupObservation, PartitionLoad, Plan, RecentArrivals, Replica
from autoscaler.packing.owners import round_robin
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import Policy
from contracts.clock import monotonic_s, wall_offset_s

STEP_S: Final = 0.02
"""Pause between two steps between ticks: a replica that dies or asks to be drained waits for so long, and for the
writing of the plan, until the others take over."""
STEPPED_S: Final = 0.25
"""A wall clock that moves so far between two ticks was set; one that is kept in time moves by thousandths."""
SLOT_S: Final = 0.1
SURGE: Final = 3.0
"""Arrivals at the peak, over what one replica serves: enough for starts, moves and stops."""
LONGEST: Final = 60


def next_tick_s(now_s: float, interval_s: float, offset_s: float) -> float:
    """Return the first k·interval + offset after `now_s`. A missed beat is not made up for.

    >>> next_tick_s(10.05, interval_s=1.0, offset_s=0.1)
    10.1
    """
    return (math.floor((now_s - offset_s) / interval_s) + 1) * interval_s + offset_s


class Loop:
    """Runs until `stop` is set.

    Time is counted by a monotonic clock; the wall clock only gives the beat. When it is set, the next tick follows the
    last by half an interval at least and one and a half at most, and is on the beat again.
    urgent: returns after each `advance` whether to tick at once; the beat stays.
    stepped: called before each tick with the seconds by which the wall clock was set since the last one; mostly 0.
    """

    def __init__(
        self,
        tick: Callable[[], None],
        advance: Callable[[], object],
        *,
        interval_s: float,
        offset_s: float,
        stop: Event,
        urgent: Callable[[], bool] = lambda: False,
        stepped: Callable[[float], None] = lambda by_s: None,
        clock: Callable[[], float] = monotonic_s,
        ahead_s: Callable[[], float] = wall_offset_s,
    ) -> None:
        self._tick, self._advance, self._urgent, self._stepped = tick, advance, urgent, stepped
        self._interval_s, self._offset_s, self._stop = interval_s, offset_s, stop
        self._clock, self._read_ahead_s = clock, ahead_s
        self._ahead_s, self._last_tick_s = ahead_s(), clock()
        self.ticks = 0

    def run(self) -> None:
        """Tick and advance; whatever they raise ends the loop."""
        due_s = self._beat_after(self._clock())
        while not self._stop.wait(max(0.0, min(STEP_S, due_s - self._clock()))):
            if self._clock() >= due_s:
                ahead_s = self._read_ahead_s()
                by_s, self._ahead_s = ahead_s - self._ahead_s, ahead_s
                self._stepped(by_s if abs(by_s) >= STEPPED_S else 0.0)
                self._tick_now()
                following_s = self._beat_after(due_s + self._interval_s / 2)
                due_s = following_s if following_s > self._last_tick_s else self._beat_after(self._last_tick_s)
            self._advance()
            if self._urgent():
                self._tick_now()

    def _tick_now(self) -> None:
        self._tick()
        self.ticks += 1
        self._last_tick_s = self._clock()

    def last_tick(self) -> tuple[int, float]:
        """Return how many ticks there were and the age of the last one in seconds."""
        return self.ticks, self._clock() - self._last_tick_s

    def _beat_after(self, at_s: float) -> float:
        return next_tick_s(at_s + self._ahead_s, self._interval_s, self._offset_s) - self._ahead_s


def warm_up_policy(
    policy: Policy, *, partitions: int, service_rate: float, interval_s: float, done: Callable[[], bool] = lambda: False
) -> None:
    """Let `policy`, which is not used afterwards, meet a surge and its end; plans are carried out at once.

    The group does not exist: the code of decisions is compiled now, and no decision about the real one waits for it.
    It ends when the policy has wanted more replicas and fewer, after a minute of intervals, when `done` returns true,
    and when the policy fails: that is told at the first tick, where it matters.
    """
    plan, seen = Plan((f"{REPLICA_PREFIX}-0",), None), set[Action]()
    weights = np.arange(1, partitions + 1) / (partitions * (partitions + 1) / 2)  # some partitions get more than others
    slots = np.zeros((max(1, round(interval_s / SLOT_S)), partitions), np.int64)
    for tick in range(LONGEST):
        if done() or {Action.UP, Action.DOWN} <= seen:
            return
        arriving = 0 if Action.UP in seen else min(SURGE, tick / 4) * service_rate * interval_s
        slots[-1] = np.floor(arriving * weights)  # they have just arrived
        loads = enumerate(slots[-1].tolist())
        observation = GroupObservation(
            at_s=tick * interval_s,
            partitions=tuple(PartitionLoad(number, events / interval_s, events) for number, events in loads),
            replicas=tuple(Replica(name, ready=True) for name in plan.replicas),
            assignment=plan.assignment or round_robin(plan.replicas, partitions),
            service_rate=service_rate,
            rebalance_time_s=0.0,
            recent=RecentArrivals(SLOT_S, slots.copy()),
        )
        try:
            decision = policy.decide(observation)
        except Exception:  # a rehearsal ends nothing but itself
            return
        if decision.fault:
            return
        seen.add(decision.action)
        plan = decision.plan
