"""The rules as loops over plain integers. The interpreter runs them on lists. A compiler runs them on arrays.

A key is a number of 32 bits and should be a hash. Its home is worker (key mod number of workers). Arithmetic
stays within 63 bits, so the interpreter and the compiler make the same choices. As in the paper, a *worker* is the
target of an event, here a partition. A *virtual worker* is a share of the source's events. One worker owns it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

KG, PKG, POTC, PORC, CH, SG, CG, STICKY_SPLIT = range(8)
"""In order: key grouping, partial key grouping, power of two choices, power of random choices, consistent hashing with
bounded loads, shuffle grouping, consistent grouping. The last rule splits only keys that overload one worker."""

EVENT_COUNT, SKETCH_COUNT, MOVE_COUNT, FIRST_WORKER = range(4)
"""Indices of State.numbers: events so far; events in the sketch (each halving halves the count); virtual workers moved;
first worker of shuffle grouping."""
BUSY, FINE, IDLE = 1, 0, -1
MAX_SALTS_PER_WORKER: Final = 20
"""Salts tried for each worker before the rule takes the least loaded worker, which is never above the mean."""
MAX_PROBES: Final = 8  # cells of the table of split keys that are searched for one key
SKETCH_EVENTS_PER_WORKER: Final = 1_000  # at twice this number, all counters of the sketch are halved
SAFE_KEY_SHARE: Final = 0.05  # largest load of one key on a worker, as a share of the mean load, without a split
MIN_EVENTS_TO_SPLIT: Final = 20  # a key with fewer events is not split: its share is not yet known
_BITS: Final = 0xFFFFFFFF


class State(NamedTuple):
    """The state of one source, changed in place: lists, or arrays of int64."""

    loads: Sequence[int]  # events sent to each worker; under consistent grouping to each virtual worker
    numbers: Sequence[int]
    ring_at: Sequence[int]  # consistent hashing: positions of the virtual nodes on the ring, ascending
    ring_worker: Sequence[int]  # worker of each node
    owner: Sequence[int]  # virtual worker → worker
    signal: Sequence[int]  # latest signal of each worker: BUSY, FINE or IDLE
    signal_since: Sequence[int]  # number of the event at which that signal began
    sketch: Sequence[int]
    """Two rows of counters in one sequence. A key has at most as many events as the smaller of its two counters."""
    split_key: Sequence[int]  # table of split keys: key + 1; 0: empty
    split_over: Sequence[int]  # number of workers that share each split key


def mix(key: int, salt: int) -> int:
    """Return a 32-bit hash of key and salt (a multiply-xorshift finaliser)."""
    bits = (key ^ (salt * 0x9E3779B1)) & _BITS
    bits = ((bits ^ (bits >> 16)) * 0x45D9F3B) & _BITS
    bits = ((bits ^ (bits >> 16)) * 0x45D9F3B) & _BITS
    return bits ^ (bits >> 16)


def choose(rule: int, epsilon: float, state: State, key: int) -> int:
    """Return the worker of the next event, which has this `key`, and count the event.

    epsilon: share by which the load of a worker may exceed the mean, for rules with such a limit.
    """
    number = state.numbers[EVENT_COUNT]
    choice = 0
    if rule == KG:
        choice = key % len(state.loads)
    elif rule == SG:
        choice = (state.numbers[FIRST_WORKER] + number) % len(state.loads)
    elif rule == PKG:
        choice = less_loaded(state, mix(key, 1), mix(key, 2))
    elif rule == POTC:
        event = number ^ (state.numbers[FIRST_WORKER] << 20)
        choice = less_loaded(state, mix(event, 1), mix(event, 2))
    elif rule == CH:
        choice = next_on_ring(state, key, (1 + epsilon) * (number + 1) / len(state.loads))
    elif rule == STICKY_SPLIT:
        choice = choose_sticky(state, key)
    else:
        choice = first_salted(state, key, (1 + epsilon) * (number + 1) / len(state.loads))
    state.loads[choice] += 1  # type: ignore[index]
    state.numbers[EVENT_COUNT] = number + 1  # type: ignore[index]
    return state.owner[choice] if rule == CG else choice


def less_loaded(state: State, first: int, second: int) -> int:
    """Return the less loaded of the two workers that these hashes select."""
    first, second = first % len(state.loads), second % len(state.loads)
    return second if state.loads[second] < state.loads[first] else first


def first_salted(state: State, key: int, limit: float) -> int:
    """Return the first worker with a load below `limit`, in the order of the key's salted hashes."""
    workers = len(state.loads)
    for salt in range(1, MAX_SALTS_PER_WORKER * workers + 1):
        choice = mix(key, salt) % workers
        if state.loads[choice] < limit:
            return choice
    return least_loaded(state)


def least_loaded(state: State) -> int:
    """Return the least loaded worker."""
    choice = 0
    for worker in range(len(state.loads)):
        if state.loads[worker] < state.loads[choice]:
            choice = worker
    return choice


def next_on_ring(state: State, key: int, limit: float) -> int:
    """Return the first worker with a load below `limit` on the ring, starting at the key's position."""
    at, low, high = mix(key, 1), 0, len(state.ring_at)
    while low < high:
        middle = (low + high) // 2
        if state.ring_at[middle] < at:
            low = middle + 1
        else:
            high = middle
    for step in range(len(state.ring_at)):
        choice = state.ring_worker[(low + step) % len(state.ring_at)]
        if state.loads[choice] < limit:
            return choice
    return least_loaded(state)


def choose_sticky(state: State, key: int) -> int:
    """Return the key's home worker. A key that would overload it is split over as many workers as needed, home first.

    The least loaded of them gets the event. The split ends when the key's load is below a quarter of the safe load.
    """
    workers = len(state.loads)
    row = len(state.sketch) // 2
    first, second = mix(key, 3) % row, row + mix(key, 4) % row
    state.sketch[first] += 1  # type: ignore[index]
    state.sketch[second] += 1  # type: ignore[index]
    state.numbers[SKETCH_COUNT] += 1  # type: ignore[index]
    total = state.numbers[SKETCH_COUNT]
    if total >= 2 * SKETCH_EVENTS_PER_WORKER * workers:
        halve(state)
    cell = find_cell(state, key)
    split_over = state.split_over[cell] if cell >= 0 and state.split_key[cell] == key + 1 else 1
    count = min(state.sketch[first], state.sketch[second])
    if count >= MIN_EVENTS_TO_SPLIT and cell >= 0:
        needed = min(int(count * workers / (SAFE_KEY_SHARE * total)) + 1, workers)
        if needed > split_over:
            state.split_key[cell], state.split_over[cell] = key + 1, needed  # type: ignore[index]
            split_over = needed
    home = choice = key % workers
    for step in range(1, split_over):
        worker = (home + step) % workers
        if state.loads[worker] < state.loads[choice]:
            choice = worker
    return choice


def find_cell(state: State, key: int) -> int:
    """Return the cell of a split key, or an empty cell for it, or −1 if other keys use all cells that it may use."""
    cells, empty = len(state.split_key), -1
    begin = mix(key, 5)
    for step in range(MAX_PROBES):
        cell = (begin + step) % cells
        if state.split_key[cell] == key + 1:
            return cell
        if state.split_key[cell] == 0 and empty < 0:
            empty = cell
    return empty


def halve(state: State) -> None:
    """Halve all counters of the sketch, and end the split of keys whose load is now small."""
    row, workers = len(state.sketch) // 2, len(state.loads)
    for at in range(len(state.sketch)):
        state.sketch[at] //= 2  # type: ignore[index]
    state.numbers[SKETCH_COUNT] //= 2  # type: ignore[index]
    min_count = SAFE_KEY_SHARE * state.numbers[SKETCH_COUNT] / workers / 4
    for cell in range(len(state.split_key)):
        if state.split_key[cell]:
            key = state.split_key[cell] - 1
            if min(state.sketch[mix(key, 3) % row], state.sketch[row + mix(key, 4) % row]) < min_count:
                state.split_key[cell] = state.split_over[cell] = 0  # type: ignore[index]


def record_signal(state: State, worker: int, signal: int) -> None:
    """Record the signal of a worker. If one worker is busy and another is idle, the idle one gets a virtual worker.

    The oldest opposite signal is used. A move resets both signals. A busy worker keeps its last virtual worker.
    """
    if state.signal[worker] != signal:
        state.signal[worker] = signal  # type: ignore[index]
        state.signal_since[worker] = state.numbers[EVENT_COUNT]  # type: ignore[index]
    if signal == FINE:
        return
    opposite = -1
    for other in range(len(state.signal)):
        is_older = opposite < 0 or state.signal_since[other] < state.signal_since[opposite]
        if state.signal[other] == -signal and is_older:
            opposite = other
    if opposite < 0:
        return
    busy, idle = (worker, opposite) if signal == BUSY else (opposite, worker)
    moving = owned = 0
    begin = state.numbers[MOVE_COUNT]
    for step in range(len(state.owner)):
        virtual = (begin + step) % len(state.owner)
        if state.owner[virtual] == busy:
            owned += 1
            moving = virtual
    state.signal[busy] = FINE  # type: ignore[index]
    if owned > 1:
        state.owner[moving] = idle  # type: ignore[index]
        state.numbers[MOVE_COUNT] += 1  # type: ignore[index]
        state.signal[idle] = FINE  # type: ignore[index]


HELPERS: Final = (
    mix, least_loaded, less_loaded, first_salted, next_on_ring, find_cell, halve, choose_sticky, choose, record_signal,
)  # fmt: skip
"""All functions, each after those that it calls. The compiler looks them up by name."""
