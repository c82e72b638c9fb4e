"""First-fit decreasing in two dimensions (Ezzeddine, Baude, Huet, ICCBDC 2022): how many bins, not who is in which."""

from collections.abc import Sequence

from autoscaler.packing.bins import Bin, Capacity, Item


def first_fit_decreasing(items: Sequence[Item], capacity: Capacity) -> tuple[Bin, ...]:
    """Put each item, largest λ first, into the first bin in which both capacities hold, else into a new one.

    Ties: items by lag, then partition number. An item bigger than a bin counts as one full bin, as in Least-Loaded:
    only idle partitions can join it. No items, no bins.
    """
    room: list[tuple[float, float]] = []
    contents: list[list[Item]] = []
    for item in sorted(items, key=lambda one: (-one.arrival_rate, -one.lag, one.partition)):
        whole = capacity.exceeded_by(item.arrival_rate, item.lag)
        rate = capacity.arrival_rate if whole else item.arrival_rate
        lag = capacity.lag if whole else item.lag
        fitting = (number for number, (rate_left, lag_left) in enumerate(room) if rate <= rate_left and lag <= lag_left)
        chosen = next(fitting, len(room))
        if chosen == len(room):
            room.append((capacity.arrival_rate, capacity.lag))
            contents.append([])
        contents[chosen].append(item)
        room[chosen] = (room[chosen][0] - rate, room[chosen][1] - lag)
    return tuple(Bin(tuple(content)) for content in contents)
