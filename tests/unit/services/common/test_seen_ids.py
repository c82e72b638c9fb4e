"""The set of ids that were written: bounded, oldest forgotten first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.seen import SeenIds


def test_the_oldest_id_is_forgotten_when_the_retention_is_reached() -> None:
    seen = SeenIds(retention=2)
    seen.update(["first", "second", "third"])
    assert "first" not in seen
    assert "second" in seen
    assert "third" in seen


def test_an_id_seen_again_counts_as_new() -> None:
    seen = SeenIds(retention=2)
    seen.update(["first", "second", "first", "third"])
    assert "first" in seen
    assert "second" not in seen


def test_a_set_that_remembers_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        SeenIds(retention=0)


@given(st.lists(st.text("abcdef", min_size=1, max_size=2)), st.integers(1, 8))
def test_it_holds_exactly_the_last_distinct_ids(ids: list[str], retention: int) -> None:
    seen = SeenIds(retention)
    seen.update(ids)
    newest_first = list(dict.fromkeys(reversed(ids)))
    assert len(seen) == min(retention, len(newest_first))
    assert all((identity in seen) == (rank < retention) for rank, identity in enumerate(newest_first))
