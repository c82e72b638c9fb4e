"""Situations for packers: what Hypothesis draws."""

from hypothesis import strategies as st

CAPACITY = 100.0
loads = st.integers(0, 12).map(lambda tenths: 10.0 * tenths) | st.integers(0, 130).map(float) | st.floats(0, 120)


@st.composite
def situations(draw, sizes=loads):
    """Loads, owners (some partitions are new, some are gone, some consumers have large numbers), an order."""
    rates = draw(st.lists(sizes, max_size=14))
    partitions = draw(st.permutations(range(len(rates))))
    known = draw(st.lists(st.integers(0, 6) | st.sampled_from([40, 10**9]), min_size=1, max_size=4))
    owners = {p: draw(st.sampled_from(known)) for p in range(len(rates) + 2) if draw(st.booleans())}
    order = draw(st.none() | st.permutations(range(len(rates))))
    return {partition: rates[partition] for partition in partitions}, owners, order


def held_by(placed, loads):
    """Consumer → loads of the partitions that it owns, largest first."""
    held = {}
    for partition, consumer in placed.items():
        held.setdefault(consumer, []).append(loads[partition])
    return {consumer: sorted(values, reverse=True) for consumer, values in held.items()}


def fits(held, capacity=CAPACITY):
    """Whether no consumer holds too much, save one partition that does so by itself, with or without idle ones."""
    return all(
        sum(values) <= capacity * (1 + 1e-9) or len([load for load in values if load > 0]) == 1
        for values in held.values()
    )
