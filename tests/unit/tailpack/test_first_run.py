"""The demo sends a rate that the machine can serve."""

import pytest

from tailpack.first_run import sustainable_share


@pytest.mark.parametrize(
    ("loops", "share"), [(140_000, 1.0), (3_000_000, 1.0), (100_000, 0.7), (70_000, 0.5), (100, 0.1)]
)
def test_a_slow_machine_gets_the_share_of_the_load_that_it_carries_and_a_fast_one_never_more(
    loops: float, share: float
) -> None:
    assert sustainable_share(loops, peak=112) == share
