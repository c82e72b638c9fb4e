"""Tests of compiled functions and their cache."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from autoscaler.jit import compiled


@compiled
def square(x: float) -> float:
    """Return x²."""
    return x * x


@compiled
def length(numbers: "np.ndarray[tuple[int], np.dtype[np.float64]]", power: float = 0.5) -> float:
    total = 0.0
    for number in numbers:
        total += square(number)
    return float(total**power)


def test_a_compiled_function_can_call_others_before_their_first_call() -> None:
    assert length(np.array([3.0, 4.0])) == 5.0
    assert length(np.array([3.0, 4.0]), power=1.0) == 25.0
    assert square(3.0) == 9.0


def test_cached_code_is_stale_if_a_file_of_its_callees_changes_even_if_a_type_is_renamed(tmp_path: Path) -> None:
    """Numba checks only the function's own file, and fails on a cache whose types do not exist any more."""
    head = "from autoscaler.jit import compiled\n"
    own = "from inner import step\n@compiled\ndef twice(pair):\n    return step(pair) + pair.number\n"
    (tmp_path / "outer.py").write_text(head + own)
    results = []
    for more, name in ((1, "Pair"), (100, "Couple")):
        types = f"from typing import NamedTuple\nclass {name}(NamedTuple):\n    number: int\npair = {name}(40)\n"
        (tmp_path / "inner.py").write_text(
            f"{head}{types}@compiled\ndef step(pair):\n    return pair.number + {more}\n"
        )
        run = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import inner, outer; print(outer.twice(inner.pair))"
        ended = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
        results.append(ended.stdout.strip())
    assert results == ["81", "180"]
