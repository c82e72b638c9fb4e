"""No parser of a record, a page or a file fails on hostile input. `make fuzz` feeds them for longer."""

from pathlib import Path

import pytest
from fuzz_suite.__main__ import TARGETS, fuzz

INPUTS = 60


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_is_refused_or_read(target: str, tmp_path: Path) -> None:
    inputs, crashes = fuzz(target, 1, tmp_path, lambda inputs: inputs < INPUTS)
    assert (inputs, dict(crashes)) == (INPUTS, {})
