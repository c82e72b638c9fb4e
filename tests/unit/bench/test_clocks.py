"""Offsets of clocks from round trips whose every delay is known."""

import random

import pytest

from bench import BenchError
from bench.clocks import Look, bounds, of_hosts


def trips(offset_us: int, count: int, *, seed: int = 1) -> list[tuple[int, int, int]]:
    """Round trips of 0.4 to 3 ms to a broker whose clock is ahead by `offset_us`, and which stamps milliseconds."""
    chance, made, now_us = random.Random(seed), [], 1_700_000_000_000_123
    for _ in range(count):
        there_us, back_us = chance.randint(200, 1500), chance.randint(200, 1500)
        stamped_us = (now_us + there_us + offset_us) // 1000 * 1000
        made.append((now_us, stamped_us, now_us + there_us + back_us))
        now_us += chance.randint(10_000, 20_000)
    return made


@pytest.mark.parametrize("offset_us", [0, 37_000, -2_500_123])
def test_the_true_offset_is_within_the_error_which_shrinks(offset_us: int) -> None:
    for count in (1, 5, 40):
        found_us, error_us = bounds(trips(offset_us, count))
        assert abs(found_us - offset_us) <= error_us
    assert error_us < 600


def test_a_clock_that_was_set_meanwhile_is_no_exact_one() -> None:
    _, error_us = bounds([*trips(0, 20), *trips(80_000, 20)])
    assert error_us > 35_000


def test_without_an_answer_there_is_no_offset() -> None:
    with pytest.raises(BenchError):
        bounds([])


def test_a_host_is_told_by_its_most_exact_look() -> None:
    looks = [
        Look(host="b", offset_us=900, error_us=400),
        Look(host="a", offset_us=-100, error_us=300),
        Look(host="a", offset_us=-600, error_us=200),
    ]
    first, second = of_hosts(looks)
    assert (first.host, first.offset_s, first.error_s, first.wander_s) == ("a", -0.0006, 0.0002, 0.0005)
    assert (second.host, second.offset_s, second.wander_s) == ("b", 0.0009, 0.0)
