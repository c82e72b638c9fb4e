"""A solution of lesson 4: Bin packing."""


def place(loads: list[float], owners: list[int], capacity: float) -> list[int]:
    placed = list(owners)
    room = dict.fromkeys(owners, capacity)
    for load, owner in zip(loads, owners, strict=True):
        room[owner] -= load
    homeless = []
    for partition in sorted(range(len(loads)), key=loads.__getitem__):  # the smallest leave first
        if room[placed[partition]] < 0:
            room[placed[partition]] += loads[partition]
            homeless.append(partition)
    for partition in reversed(homeless):  # the largest is placed first, where it fits most tightly
        fitting = [owner for owner, free in room.items() if loads[partition] <= free]
        owner = min(fitting, key=room.__getitem__) if fitting else max(room) + 1
        room[owner] = room.get(owner, capacity) - loads[partition]
        placed[partition] = owner
    return placed
