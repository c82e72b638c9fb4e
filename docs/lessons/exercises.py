"""The exercises of the ten lessons: titles, minutes, and the cases by which `tailpack lesson check` judges an answer.

Each function of cases takes the answer and a random generator. It yields an empty text for a case that passes, and for
a wrong answer what is wrong and a hint, but never the right answer.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from random import Random
from typing import Any

from tailpack import lab

SHARE = 0.999
"""Share of events that must be in time."""


@dataclass(frozen=True)
class Exercise:
    """The exercise of a lesson."""

    title: str
    minutes: int
    answer: str
    """Name of the function or class that answers it."""
    form: str
    """Parameters and result of the answer, in one sentence."""
    cases: Callable[[Any, Random], Iterator[str]]
    """Takes the answer and a random generator. Yields "" for each case that passes, or a hint about a wrong one."""
    cpu_s: int = 10
    """Processor time that all cases may take, in seconds."""


def burst_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 1: a burst of this size is in time, and one event more is not."""
    for _ in range(50):
        rate, target_s = random.randint(40, 400), random.choice((0.1, 0.25, 0.5, 1.0, 1.5))
        size = answer(rate, target_s)
        case = f"largest_burst({rate}, {target_s}) returned {size!r}"
        if not isinstance(size, Integral) or size < 1:
            yield f"{case}, which is not a positive whole number of type int"
        late = lab.burst(min(int(size), 10_000), rate, target_s).late
        one_more = lab.burst(min(int(size), 10_000) + 1, rate, target_s).late
        hint = f"{case}: {late} events of this burst are late. When is the last one done?" if late else ""
        yield hint or ("" if one_more else f"{case}: one event more would still be in time. How long does it wait?")


def interval_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 2: no event is late a little before the interval ends, and some are a little after."""
    for _ in range(30):
        capacity, target_s = random.randint(100, 400), random.choice((0.4, 0.5, 0.8, 1.0))
        rate = round(capacity * random.choice((0.6, 0.9, 1.2, 1.5, 2.0, 3.0)))
        longest_s = answer(rate, capacity, target_s)
        case = f"longest_interval_s({rate}, {capacity}, {target_s}) returned {longest_s!r}"
        if not isinstance(longest_s, int | float) or not longest_s > 0:
            yield f"{case}, which is not a positive number"
        if rate <= capacity:
            yield "" if math.isinf(longest_s) else f"{case}: the replicas can serve this rate, so no backlog grows"
            continue
        before, after = (_late_after(rate, capacity, target_s, factor * longest_s) for factor in (0.96, 1.04))
        hint = f"{case}: before that time, events are late. How fast does the backlog grow?" if before else ""
        yield hint or ("" if after else f"{case}: all is in time even after it. How long does the last event wait?")


def _late_after(rate: float, capacity: float, target_s: float, seconds: float) -> int:
    events = min(50_000, max(1, round(rate * min(seconds, 1e3))))
    return lab.burst(events, capacity, target_s, spread_s=events / rate).late


def skew_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 3: the first burst that no number of replicas serves in time."""
    for number in range(40):
        rate, target_s = random.randint(100, 300), random.choice((0.2, 0.3, 0.5))
        most = int(rate * target_s)
        table = [[random.randint(0, most - 1) for _ in range(6)] for _ in range(12)]
        for _ in range(number % 3):
            table[random.randrange(12)][random.randrange(6)] = random.randint(most + 1, most + 20)
        found = answer([list(row) for row in table], rate, target_s)
        hopeless = [(s, p) for s, row in enumerate(table) for p, events in enumerate(row) if events > most]
        case = f"at {rate} events/s and {target_s} s, first_hopeless(table, …) returned {found!r}"
        if found is None:
            yield f"{case}, but one partition is too full for a replica of its own" if hopeless else ""
        elif not isinstance(found, tuple | list) or len(found) != 2:
            yield f"{case}, which is neither None nor a pair (second, partition)"
        elif tuple(found) not in hopeless:
            yield f"{case}: a replica of its own would serve that burst in time. How many events fit into the target?"
        else:
            yield "" if tuple(found) == hopeless[0] else f"{case}: an earlier burst is already too large"


def first_fit(loads: Sequence[float], capacity: float) -> list[int]:
    """Return the owner of each partition by first-fit decreasing: the largest first, each into the first that fits."""
    owners, room = [0] * len(loads), list[float]()
    for partition in sorted(range(len(loads)), key=lambda one: -loads[one]):
        at = next((at for at, free in enumerate(room) if loads[partition] <= free + 1e-9), len(room))
        room += [capacity] * (at == len(room))
        room[at] -= loads[partition]
        owners[partition] = at
    return owners


def fewest_replicas(loads: Sequence[float], capacity: float) -> int:
    """Return the smallest number of replicas that hold all loads, by exact search."""
    ordered = sorted(loads, reverse=True)

    def fits(number: int, room: list[float]) -> bool:
        if number == len(ordered):
            return True
        places = {free: at for at, free in enumerate(room) if ordered[number] <= free + 1e-9}  # equal ones count once
        return any(
            fits(number + 1, [*room[:at], free - ordered[number], *room[at + 1 :]]) for free, at in places.items()
        )

    return next(count for count in range(len(ordered) + 1) if fits(0, [capacity] * count))


def packing_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 4: nothing overflows, at most one replica too many, and half as much load moves as under first-fit."""
    moved = moved_by_first_fit = 0.0
    for _ in range(200):
        before = [random.uniform(5, 40) for _ in range(9)]
        owners = first_fit(before, 100)
        loads = [round(min(95.0, load * random.uniform(0.8, 1.35)), 1) for load in before]
        found = answer(list(loads), list(owners), 100.0)
        case = f"place({loads}, {owners}, 100) returned {found!r}"
        if not isinstance(found, list | tuple) or len(found) != len(loads):
            yield f"{case}, which is not a list with one owner per partition"
        filled = {
            owner: sum(load for load, at in zip(loads, found, strict=True) if at == owner) for owner in set(found)
        }
        if max(filled.values()) > 100 + 1e-6:
            yield f"{case}: a replica owns more than its capacity. Which partitions must leave it?"
        if len(filled) > max(fewest_replicas(loads, 100), len(set(owners))) + 1:
            yield f"{case}: {len(filled)} replicas are too many. Is there room at a replica that already exists?"
        moved += sum(load for load, old, new in zip(loads, owners, found, strict=True) if old != new)
        fresh = first_fit(loads, 100)
        moved_by_first_fit += sum(load for load, old, new in zip(loads, owners, fresh, strict=True) if old != new)
        yield ""
    if moved > moved_by_first_fit / 2:
        yield f"over all cases, {moved / moved_by_first_fit:.0%} as much load moved as under first-fit; keep what fits"


def move_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 5: the moves fit into the allowed late events, and one move more does not."""
    for _ in range(60):
        late = [random.choice((0, 1, 2, 3, 5, 8, 13)) for _ in range(random.randint(5, 30))] + [4]
        rate, share = random.randint(50, 400), random.choice((0.001, 0.005, 0.01))
        count, mean = answer(list(late), rate, share), sum(late) / len(late)
        case = f"moves_per_minute({late}, {rate}, {share}) returned {count!r}"
        if not isinstance(count, Integral) or count < 0:
            yield f"{case}, which is not a whole number of type int"
        allowed = share * rate * 60
        hint = f"{case}: these moves make {count * mean:.1f} events late a minute, which is too many"
        fewer = f"{case}: one move more would still fit. How many events may be late a minute, and how many does a move cost?"
        yield hint if count * mean > allowed + 1e-9 else fewer if (count + 1) * mean <= allowed - 1e-9 else ""


def price_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 6: the price keeps 99.9 % in time, at a limited cost, whenever the bursts begin."""
    price = answer()
    if not isinstance(price, int | float) or not price > 0:
        yield f"choose_price() returned {price!r}, which is not a positive number"
    for part in range(3):
        phase_s = round((part + random.random()) / 3, 3)
        run = lab.simulate("w1", policy="tail-aware", price=price, burst_phase_s=phase_s, duration_s=240)
        case = f"at price {price:g}, with bursts {phase_s:g} s after the decision,"
        if run.in_time < SHARE:
            yield f"{case} {run.in_time:.2%} are in time. What does a low price make of a late event?"
        yield "" if run.replica_minutes <= 8.52 else f"{case} the run costs {run.replica_minutes:.2f} replica-minutes"


Row = tuple[float, str, float, float]


def start_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 7: the start-up time from which on a fixed count is the cheapest that meets the SLO."""
    for _ in range(60):
        rows: list[Row] = []
        for startup_s in (0.0, 5.0, 10.0, 20.0, 40.0, 60.0):
            scaling = max(0.99, 1 - startup_s * random.uniform(0, 1e-4))
            rows += [(startup_s, "tail-aware", scaling, 20 + startup_s * random.uniform(0, 1))]
            rows += [(startup_s, "linear", scaling - 0.002, 15.0), (startup_s, "static-3", 0.98, 18.0)]
            rows += [(startup_s, "static-5", 1.0, 40.0)]
        found = answer([*rows])
        right = crossing_s(rows)
        case = f"crossing_s({rows}) returned {found!r}"
        if found is not None and found not in {row[0] for row in rows}:
            yield f"{case}, which is neither None nor a start-up time of the rows"
        elif found == right:
            yield ""
        elif found is None or (right is not None and found > right):
            yield f"{case}: a fixed count is already the cheapest before that. Which contenders meet the SLO?"
        else:
            yield f"{case}: at that or a longer start-up time, scaling is cheaper. It must hold from there on"


def crossing_s(rows: Sequence[Row]) -> float | None:
    """Return the start-up time from which on the cheapest contender that meets the SLO is a fixed count, or None."""
    found = None
    for startup_s in sorted({row[0] for row in rows}, reverse=True):
        best = min((row for row in rows if row[0] == startup_s and row[2] >= SHARE), key=lambda row: row[3])
        if not best[1].startswith("static-"):
            break
        found = startup_s
    return found


def loop_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 8: a client that waits for each answer, and skips events that are due while it waits."""
    for _ in range(40):
        gap_s, service_s = random.choice((0.05, 0.1, 0.2)), random.choice((0.01, 0.03))
        intended_s = [round(number * gap_s, 3) for number in range(60)]
        stall = (begin_s := round(random.uniform(1, 4), 3), begin_s + random.choice((0.5, 1.0, 2.0)))
        found = answer(list(intended_s), server(service_s, stall))
        serve, right, free_s = server(service_s, stall), list[tuple[float, float]](), 0.0
        for at_s in intended_s:
            if at_s >= free_s:
                right.append((at_s, free_s := serve(at_s)))
        case = f"with an event each {gap_s} s and a stall of {stall[1] - stall[0]:g} s, closed_loop returned"
        if not isinstance(found, list | tuple) or not all(isinstance(one, tuple | list) for one in found):
            yield f"{case} {found!r}, which is not a list of pairs (sent, done)"
        elif len(found) != len(right):
            why = "does the client send while it waits?" if len(found) > len(right) else "which events must it skip?"
            yield f"{case} {len(found)} events, which are too {'many' if len(found) > len(right) else 'few'}: {why}"
        else:
            same = all(math.dist(one, other) < 1e-6 for one, other in zip(found, right, strict=True))
            yield "" if same else f"{case} wrong times: an event is sent at its intended time, or not at all"


def server(service_s: float, stall: tuple[float, float]) -> Callable[[float], float]:
    """Return a function from the time of a request to the time of its answer. During the stall nothing is served."""
    free_s = 0.0

    def serve(at_s: float) -> float:
        nonlocal free_s
        start_s = max(at_s, free_s)
        free_s = (stall[1] if stall[0] <= start_s < stall[1] else start_s) + service_s
        return free_s

    return serve


def partitioner_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 9: each choice meets its requirement on hidden streams."""
    for skew in (1.0, round(random.uniform(1.1, 1.3), 2)):
        seed, slow = random.randrange(10**6), (1.0, 1.0, 0.5, 2.0, 1.0, 0.5, 1.0, 2.0, 1.0)
        for need in ("order", "memory", "unequal"):
            choice = answer(need)
            found = lab.spread(choice, skew=skew, seed=seed, capacities=slow if need == "unequal" else (1.0,) * 9)
            case = (
                f"choose({need!r}) returned {choice!r}: at skew {skew:g}, its memory is {found['memory']:.2f} and its "
            )
            case += f"imbalance {found['imbalance']:.1%}. "
            kept = {
                "order": found["memory"] == 1,
                "memory": found["memory"] <= 1.1 and found["imbalance"] <= 0.1,
                "unequal": found["imbalance"] <= 0.2,
            }
            hints = {
                "order": "A key that reaches two partitions can lose its order",
                "memory": "At most 1.1 partitions per key, and at most 10 % imbalance, are required",
                "unequal": "Slow workers must get less; at most 20 % imbalance is allowed",
            }
            yield "" if kept[need] else case + hints[need]


def league_cases(answer: Any, random: Random) -> Iterator[str]:
    """Lesson 10: more events in time than `linear`, for less than the cheapest fixed count that meets the SLO."""
    played, totals = 0, [0.0] * 4
    while played < 3:
        number = random.randrange(10_000, 10**6)
        if (counts := lab.random_partitions(number)) > 12:
            continue
        fixed = [f"static-{count}" for count in range(1, counts + 1)]
        points = lab.compare(f"random-{number}", [answer, "linear", *fixed], seeds=1).points
        mine, linear, *rest = points.values()
        if good := [cost for in_time, cost in rest if in_time >= SHARE]:
            played += 1
            totals = [a + b for a, b in zip(totals, (mine[0], linear[0], mine[1], min(good)), strict=True)]
            yield ""
    in_time, of_linear, cost, fixed_cost = (total / played for total in totals)
    figures = (
        f"over {played} scenarios, {in_time:.2%} are in time (linear: {of_linear:.2%}), for {cost:.1f} replica-minutes"
    )
    if in_time <= of_linear:
        yield f"{figures}. What waits already needs replicas too, and a start takes time"
    yield (
        "" if cost < fixed_cost else f"{figures}; the best fixed counts cost {fixed_cost:.1f}. When can replicas leave?"
    )


EXERCISES = {
    "01": Exercise(
        "One burst", 15, "largest_burst",
        "largest_burst(service_rate, target_s) returns the largest number of events that may arrive at once", burst_cases,
    ),
    "02": Exercise(
        "Lag is not latency", 20, "longest_interval_s",
        "longest_interval_s(rate, capacity, target_s) returns seconds, or infinity if no event is ever late", interval_cases,
    ),
    "03": Exercise(
        "Skew", 20, "first_hopeless",
        "first_hopeless(table, service_rate, target_s) returns a pair (second, partition), or None", skew_cases,
    ),
    "04": Exercise(
        "Bin packing", 20, "place",
        "place(loads, owners, capacity) returns a list with the number of a replica for each partition", packing_cases,
    ),
    "05": Exercise(
        "The price of a rebalance", 20, "moves_per_minute",
        "moves_per_minute(late_per_move, rate, allowed_share) returns a whole number of moves", move_cases,
    ),
    "06": Exercise("Plans have prices", 20, "choose_price", "choose_price() returns a positive number", price_cases, 60),
    "07": Exercise(
        "Starts take time", 20, "crossing_s",
        "crossing_s(rows) takes rows (startup_s, policy, in_time, replica_minutes) and returns one startup_s, or None",
        start_cases,
    ),
    "08": Exercise(
        "How a p99 can mislead", 20, "closed_loop",
        "closed_loop(intended_s, serve) returns a list of pairs (sent_s, done_s)", loop_cases,
    ),
    "09": Exercise(
        "Order, keys and partitioners", 20, "choose",
        "choose(need) takes 'order', 'memory' or 'unequal', and returns the name of a partitioner", partitioner_cases, 60,
    ),
    "10": Exercise(
        "Your policy", 30, "Mine", "Mine is a class with decide(observation), which returns a Decision", league_cases, 90,
    ),
}  # fmt: skip
