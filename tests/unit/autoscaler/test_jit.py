"""Compiled functions are functions like any other, and the compiler is imported by the first call only."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


def test_a_compiled_function_may_call_others_that_nobody_has_called_before() -> None:
    assert length(np.array([3.0, 4.0])) == 5.0
    assert length(np.array([3.0, 4.0]), power=1.0) == 25.0
    assert square(3.0) == 9.0


@pytest.mark.parametrize(
    "begun",
    [
        "from tailpack.cli.main import main; sys.argv = ['tailpack', 'policies']; main()",
        "from tailpack.cli.main import main; sys.argv = ['tailpack', 'simulate', '--help']; main()",
        "import autoscaler.live.composition, bench.simulation.run",
    ],
    ids=["policies", "help", "modules"],
)
def test_who_computes_nothing_does_not_wait_for_the_compiler(begun: str) -> None:
    asked = f"import sys\ntry:\n    {begun}\nfinally:\n    sys.exit('numba' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", asked], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr


def test_what_is_kept_is_forgotten_when_another_file_changes_whose_functions_are_in_it(tmp_path: Path) -> None:
    """Numba itself looks at the function's own file only."""
    head = "from autoscaler.jit import compiled\n"
    own = "from inner import step\n@compiled\ndef twice(number):\n    return step(step(number))\n"
    (tmp_path / "outer.py").write_text(head + own)
    said = []
    for more in (1, 100):
        (tmp_path / "inner.py").write_text(f"{head}@compiled\ndef step(number):\n    return number + {more}\n")
        run = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from outer import twice; print(twice(40))"
        ended = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
        said.append(ended.stdout.strip())
    assert said == ["42", "240"]
