"""The rules, as loops over plain integers: the interpreter runs them on lists, event by event, a compiler on arrays.

A key is a number of 32 bits, and should be a hash: its remainder is its home. All arithmetic stays within 63 bits, so
that both ways give the same choices. The words are the paper's: a *worker* is what an event is sent to, here a
partition; a *virtual worker* is a share of the source's events that has one worker at a time.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

KG, PKG, POTC, PORC, CH, SG, CG, STICKY_SPLIT = range(8)
"""Key grouping, partial key grouping, power of two choices, power of random choices, consistent hashing with bounded
loads, shuffle grouping, consistent grouping, and splitting those keys alone that are too much for one worker."""

EVENT_COUNT, SKETCH_COUNT, MOVE_COUNT, FIRST_WORKER = range(4)
"""Places in State.numbers: events so far; those since the sketch was last halved, older ones by half; virtual workers
that have moved; the first worker of shuffle grouping."""
BUSY, FINE, IDLE = 1, 0, -1
MAX_SALTS_PER_WORKER: Final = 20
"""Tries for each worker, after which the least loaded one is taken: some worker is never above the mean."""
MAX_PROBES: Final = 8  # cells of the table of split keys in which one may lie
SKETCH_EVENTS_PER_WORKER: Final = 1_000  # events for each worker after which the sketch forgets half
SAFE_KEY_SHARE: Final = 0.05  # what one key may bring to a worker, as a share of the mean load: beyond, it is split
MIN_EVENTS_TO_SPLIT: Final = 20  # events of a key before which it is not split: a few look like a flood
_BITS: Final = 0xFFFFFFFF


class State(NamedTuple):
    """What a source remembers; changed in place. Lists, or arrays of int64."""

    loads: Sequence[int]
    """Events sent to each worker; under consistent grouping to each virtual worker."""
    numbers: Sequence[int]
    ring_at: Sequence[int]
    """Consistent hashing: places of the virtual nodes on the ring, rising; and whose they are."""
    ring_worker: Sequence[int]
    owner: Sequence[int]
    """Virtual worker → worker."""
    signal: Sequence[int]
    """BUSY, FINE or IDLE, as each worker said last, and since which event."""
    signal_since: Sequence[int]
    sketch: Sequence[int]
    """Two rows of counters one after the other: a key has been seen at most as often as the smaller of its two."""
    split_key: Sequence[int]
    """Keys that are split, + 1; 0: empty. And over how many workers."""
    split_over: Sequence[int]


def mix(key: int, salt: int) -> int:
    """Return 32 bits in which each bit of key and salt counts (a multiply-xorshift finaliser)."""
    bits = (key ^ (salt * 0x9E3779B1)) & _BITS
    bits = ((bits ^ (bits >> 16)) * 0x45D9F3B) & _BITS
    bits = ((bits ^ (bits >> 16)) * 0x45D9F3B) & _BITS
    return bits ^ (bits >> 16)


def choose(rule: int, epsilon: float, state: State, key: int) -> int:
    """Return the worker that the next event, of `key`, goes to, and count it.

    epsilon: by how much a worker may exceed the mean load, where the rule bounds it.
    """
    number = state.numbers[EVENT_COUNT]
    found = 0
    if rule == KG:
        found = key % len(state.loads)
    elif rule == SG:
        found = (state.numbers[FIRST_WORKER] + number) % len(state.loads)
    elif rule == PKG:
        found = less_loaded(state, mix(key, 1), mix(key, 2))
    elif rule == POTC:
        event = number ^ (state.numbers[FIRST_WORKER] << 20)
        found = less_loaded(state, mix(event, 1), mix(event, 2))
    elif rule == CH:
        found = next_on_ring(state, key, (1 + epsilon) * (number + 1) / len(state.loads))
    elif rule == STICKY_SPLIT:
        found = choose_sticky(state, key)
    else:
        found = first_salted(state, key, (1 + epsilon) * (number + 1) / len(state.loads))
    state.loads[found] += 1  # type: ignore[index]
    state.numbers[EVENT_COUNT] = number + 1  # type: ignore[index]
    return state.owner[found] if rule == CG else found


def less_loaded(state: State, one: int, other: int) -> int:
    """Return the less loaded of two workers, given by their hashes."""
    one, other = one % len(state.loads), other % len(state.loads)
    return other if state.loads[other] < state.loads[one] else one


def first_salted(state: State, key: int, limit: float) -> int:
    """Return the first worker below `limit` in the order that the key's salted hashes give."""
    workers = len(state.loads)
    for salt in range(1, MAX_SALTS_PER_WORKER * workers + 1):
        found = mix(key, salt) % workers
        if state.loads[found] < limit:
            return found
    return least_loaded(state)


def least_loaded(state: State) -> int:
    """Return the least loaded worker."""
    found = 0
    for worker in range(len(state.loads)):
        if state.loads[worker] < state.loads[found]:
            found = worker
    return found


def next_on_ring(state: State, key: int, limit: float) -> int:
    """Return the worker below `limit` whose virtual node comes first on the ring, from the key's own place on."""
    at, low, high = mix(key, 1), 0, len(state.ring_at)
    while low < high:
        middle = (low + high) // 2
        if state.ring_at[middle] < at:
            low = middle + 1
        else:
            high = middle
    for step in range(len(state.ring_at)):
        found = state.ring_worker[(low + step) % len(state.ring_at)]
        if state.loads[found] < limit:
            return found
    return least_loaded(state)


def choose_sticky(state: State, key: int) -> int:
    """Return the key's home; for a key that is too much for one worker the least loaded of as many as it needs.

    They lie behind its home, and are remembered until it brings a quarter of what a worker safely takes.
    """
    workers = len(state.loads)
    row = len(state.sketch) // 2
    one, other = mix(key, 3) % row, row + mix(key, 4) % row
    state.sketch[one] += 1  # type: ignore[index]
    state.sketch[other] += 1  # type: ignore[index]
    state.numbers[SKETCH_COUNT] += 1  # type: ignore[index]
    seen = state.numbers[SKETCH_COUNT]
    if seen >= 2 * SKETCH_EVENTS_PER_WORKER * workers:
        halve(state)
    cell = find_cell(state, key)
    split_over = state.split_over[cell] if cell >= 0 and state.split_key[cell] == key + 1 else 1
    came = min(state.sketch[one], state.sketch[other])
    if came >= MIN_EVENTS_TO_SPLIT and cell >= 0:
        needed = min(int(came * workers / (SAFE_KEY_SHARE * seen)) + 1, workers)
        if needed > split_over:
            state.split_key[cell], state.split_over[cell] = key + 1, needed  # type: ignore[index]
            split_over = needed
    home = found = key % workers
    for step in range(1, split_over):
        worker = (home + step) % workers
        if state.loads[worker] < state.loads[found]:
            found = worker
    return found


def find_cell(state: State, key: int) -> int:
    """Return the cell of a split key, or an empty one that it may take; −1: all are taken."""
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
    """Forget half of what was counted, and the split of keys that bring little now."""
    row, workers = len(state.sketch) // 2, len(state.loads)
    for at in range(len(state.sketch)):
        state.sketch[at] //= 2  # type: ignore[index]
    state.numbers[SKETCH_COUNT] //= 2  # type: ignore[index]
    little = SAFE_KEY_SHARE * state.numbers[SKETCH_COUNT] / workers / 4
    for cell in range(len(state.split_key)):
        if state.split_key[cell]:
            key = state.split_key[cell] - 1
            if min(state.sketch[mix(key, 3) % row], state.sketch[row + mix(key, 4) % row]) < little:
                state.split_key[cell] = state.split_over[cell] = 0  # type: ignore[index]


def record_signal(state: State, worker: int, signal: int) -> None:
    """Take in what a worker says of itself; where a busy and an idle one have said so, move a virtual worker.

    Who has waited longest is served first; both then have to say it again. The busy one keeps one virtual worker.
    """
    if state.signal[worker] != signal:
        state.signal[worker] = signal  # type: ignore[index]
        state.signal_since[worker] = state.numbers[EVENT_COUNT]  # type: ignore[index]
    if signal == FINE:
        return
    opposite = -1
    for other in range(len(state.signal)):
        longer = opposite < 0 or state.signal_since[other] < state.signal_since[opposite]
        if state.signal[other] == -signal and longer:
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
    mix,
    least_loaded,
    less_loaded,
    first_salted,
    next_on_ring,
    find_cell,
    halve,
    choose_sticky,
    choose,
    record_signal,
)
"""All of them, each after those that it calls: for a compiler that must know them by name."""
