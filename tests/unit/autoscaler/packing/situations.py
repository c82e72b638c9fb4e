"""Random arguments of packers (Hypothesis)."""

from hypothesis import strategies as st

CAPACITY = 100.0
loads = st.integers(0, 12).map(lambda tenths: 10.0 * tenths) | st.integers(0, 130).map(float) | st.floats(0, 120)


@st.composite
def situations(draw, sizes=loads):
    """Draw loads, owners (new and removed partitions, large consumer numbers) and an order."""
    rates = draw(st.lists(sizes, max_size=14))
    partitions = draw(st.permutations(range(len(rates))))
    known = draw(st.lists(st.integers(0, 6) | st.sampled_from([40, 10**9]), min_size=1, max_size=4))
    owners = {p: draw(st.sampled_from(known)) for p in range(len(rates) + 2) if draw(st.booleans())}
    order = draw(st.none() | st.permutations(range(len(rates))))
    return {partition: rates[partition] for partition in partitions}, owners, order


def loads_by_consumer(owners, loads):
    """Return the loads of the partitions of each consumer, largest first."""
    owned = {}
    for partition, consumer in owners.items():
        owned.setdefault(consumer, []).append(loads[partition])
    return {consumer: sorted(values, reverse=True) for consumer, values in owned.items()}


def fits(owned, capacity=CAPACITY):
    """Return whether no consumer exceeds the capacity, except by a single partition, with or without idle ones."""
    return all(
        sum(values) <= capacity * (1 + 1e-9) or len([load for load in values if load > 0]) == 1
        for values in owned.values()
    )
