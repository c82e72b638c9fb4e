"""The one module that knows the just-in-time compiler (Numba): loops over events and partitions at machine speed."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` as machine code. It may use numbers and numpy arrays only, and compiled functions.

    The code is kept beside the module, so that only the first call on a machine waits for the compiler (seconds).
    """
    machine_code: Callable[P, R] = njit(cache=True, nogil=True)(function)
    return machine_code
