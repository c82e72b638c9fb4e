"""A solution of lesson 3: Skew."""


def first_hopeless(table: list[list[int]], service_rate: float, target_s: float) -> tuple[int, int] | None:
    for second, row in enumerate(table):
        for partition, events in enumerate(row):
            if events > service_rate * target_s + 1e-9:
                return second, partition
    return None
