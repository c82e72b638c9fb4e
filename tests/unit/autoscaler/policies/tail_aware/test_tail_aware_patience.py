"""Patience, second by second."""

from autoscaler.policies.tail_aware.patience import FORGIVEN_S, Patience


def test_no_patience_is_needed_where_demand_only_falls():
    patience = Patience(8.0)
    for second, wanted in enumerate((5, 3, 2, 1)):
        assert patience.least(second, wanted, 0.0) == wanted
        patience.note(second, wanted + 1, wanted)
    assert patience.seconds == 0


def test_each_start_soon_after_a_stop_doubles_it_up_to_a_limit():
    patience = Patience(8.0)
    seen = []
    for turn in range(6):
        patience.note(20 * turn, 2, 1)
        patience.note(20 * turn + 3, 1, 2)
        seen.append(patience.seconds)
    assert seen == [1, 2, 4, 8, 8, 8]


def test_a_start_long_after_a_stop_is_no_regret():
    patience = Patience(8.0)
    patience.note(0, 2, 1)
    patience.note(30, 1, 2)
    assert patience.seconds == 0


def test_time_without_regret_forgives():
    patience = Patience(8.0)
    for turn in range(3):
        patience.note(20 * turn, 2, 1)
        patience.note(20 * turn + 3, 1, 2)
    seen = []
    for second in range(50, 50 + 4 * round(FORGIVEN_S)):
        patience.note(second, 2, 2)
        seen.append(patience.seconds)
    assert list(dict.fromkeys(seen)) == [4, 2, 1, 0]


def test_fewer_must_have_sufficed_for_all_of_the_patience_and_a_start():
    patience = Patience(8.0)
    assert patience.least(0, 3, 5.0) == 3
    assert [patience.least(second, 1, 5.0) for second in range(1, 8)] == [3] * 5 + [1] * 2
