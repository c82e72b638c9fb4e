"""The statistics, against distributions with known parameters."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from report.measures import PairedDifference, bootstrap_interval, paired_difference, pareto_front

NUMBERS = st.floats(-1e6, 1e6)


def test_the_interval_covers_the_true_mean_as_often_as_documented() -> None:
    random = np.random.default_rng(7)
    trials, covered = 100, 0
    for _ in range(trials):
        found = bootstrap_interval(random.normal(10.0, 3.0, 20).tolist())
        covered += found.low <= 10.0 <= found.high
    assert 0.86 <= covered / trials <= 0.99


def test_pairs_show_a_small_difference_that_the_spread_hides() -> None:
    """Seeds differ by 10, policies by 0.5: side by side nothing is seen, pair by pair it is."""
    random = np.random.default_rng(3)
    worlds = random.normal(100, 10, 20)
    a = (worlds + 0.5 + random.normal(0, 0.1, 20)).tolist()
    alone_a, alone_b = bootstrap_interval(a), bootstrap_interval(worlds.tolist())
    assert alone_a.low < alone_b.high, "the intervals overlap"
    found = paired_difference(a, worlds.tolist())
    assert found.distinguishable
    assert found.low < 0.5 < found.high


def test_a_difference_whose_interval_contains_0_is_not_distinguishable() -> None:
    random = np.random.default_rng(5)
    a, b = random.normal(0, 1, 20).tolist(), random.normal(0, 1, 20).tolist()
    assert not paired_difference(a, b).distinguishable
    assert not paired_difference(a, a).distinguishable
    assert paired_difference([2.0, 3.0], [1.0, 2.0]) == PairedDifference(
        mean=1.0, low=1.0, high=1.0, distinguishable=True
    )


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_exactly_the_points_off_the_front_are_dominated(points: list[tuple[float, float]]) -> None:
    def dominated(point: tuple[float, float]) -> bool:
        return any(other != point and other[0] >= point[0] and other[1] <= point[1] for other in points)

    front = pareto_front(points)
    assert sorted(front) == [number for number, point in enumerate(points) if not dominated(point)]
