"""Plain implementation of the twelve algorithms of Landau et al. (2024), for comparison with the compiled ones."""

RULES = {"n": "next", "f": "first", "b": "best", "w": "worst"}


class Packing:
    """Open consumers and assigned partitions."""

    def __init__(self, loads, owners, capacity):
        self.loads, self.owners, self.capacity = loads, owners, capacity
        self.owned = {}
        self.newest = None
        self.owners_after = {}

    def open(self, consumer):
        self.owned[consumer] = []
        self.newest = consumer

    def load(self, consumer):
        return sum(self.loads[partition] for partition in self.owned[consumer])

    def fits(self, partition, consumer):
        return not self.owned[consumer] or self.load(consumer) + self.loads[partition] <= self.capacity

    def put(self, partition, consumer):
        self.owned[consumer].append(partition)
        self.owners_after[partition] = consumer

    def chosen(self, partition, rule):
        """Return the consumer that the fit rule chooses, or None; ties go to the lowest index."""
        if rule == "next":
            newest = self.newest
            if newest is None:
                return None
            idle = self.load(newest) == 0  # as published: it accepts any load, even above the capacity
            return newest if idle or self.fits(partition, newest) else None
        fitting = [consumer for consumer in sorted(self.owned) if self.fits(partition, consumer)]
        if not fitting:
            return None
        if rule == "first":
            return fitting[0]
        best = max if rule == "best" else min
        return next(consumer for consumer in fitting if self.load(consumer) == best(map(self.load, fitting)))

    def place(self, partition, rule):
        consumer = self.chosen(partition, rule)
        if consumer is None:
            home = self.owners.get(partition)
            consumer = home
            if home is None or home in self.owned:
                consumer = next(index for index in range(len(self.loads) + 1) if index not in self.owned)
            self.open(consumer)
        self.put(partition, consumer)


def any_fit(name, loads, owners, capacity, order):
    opened = Packing(loads, owners, capacity)
    rule = RULES[name[0]]
    if rule == "next":
        opened.open(0)
    for partition in sorted(order, key=lambda number: -loads[number]) if name.endswith("d") else order:
        opened.place(partition, rule)
    return opened.owners_after


def modified_any_fit(name, loads, owners, capacity, order):
    rule = RULES[name[1]]
    opened = Packing(loads, owners, capacity)
    owned = {}
    for partition in order:
        if partition in owners:
            owned.setdefault(owners[partition], []).append(partition)
    key = max if name.endswith("p") else sum
    ranked = sorted(owned, key=lambda number: (-key(loads[partition] for partition in owned[number]), number))
    unplaced = [partition for partition in order if partition not in owners]
    for consumer in ranked:
        left = sorted(owned[consumer], key=lambda number: -loads[number])
        while left:
            target = opened.chosen(left[-1], rule)
            if target is None:
                break
            opened.put(left.pop(), target)
        if not left:
            continue
        opened.open(consumer)
        while left and opened.fits(left[0], consumer):
            opened.put(left.pop(0), consumer)
        unplaced += left
    for partition in sorted(unplaced, key=lambda number: -loads[number]):
        opened.place(partition, rule)
    return opened.owners_after


def published_packing(name, loads, owners, capacity, order=None):
    order = list(loads) if order is None else list(order)
    return (modified_any_fit if name.startswith("m") else any_fit)(name, loads, owners, capacity, order)
