"""The only module that uses the just-in-time compiler (Numba), for loops over events and partitions."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def compiled(function: Callable[P, R], calls: Sequence[Callable[..., Any]] = ()) -> Callable[P, R]:
    """Return `function` as machine code. It may use only numbers, numpy arrays, compiled functions and `calls`.

    calls: plain functions that `function` calls. They become part of its machine code, and stay Python elsewhere.

    The machine code is cached next to the module, so only the first call on a computer waits seconds
    for the compiler. An image contains the cache, which also works on a read-only file system. The compiler is
    imported at the first call of a compiled function.
    """
    return _Compiled(function, calls)


def load_compiler(on_compile: Callable[[], None] | None = None) -> None:
    """Import the compiler now, before a first call that must not wait for it.

    on_compile: called once, when this process compiles its first function that is not in the cache.
    """
    times = _compile_times()
    if on_compile is not None:
        times.on_compile = on_compile


def compiling_s() -> float:
    """Return the seconds that this process has spent compiling since `load_compiler`."""
    return float(getattr(_compile_times(), "_duration", 0.0))


@cache
def _compile_times() -> Any:
    from numba.core import event  # noqa: PLC0415

    class CompileTimes(event.TimingListener):  # type: ignore[misc]
        on_compile: Callable[[], None] | None = None

        def on_start(self, event: Any) -> None:
            if self.on_compile is not None:
                self.on_compile()
                self.on_compile = None
            super().on_start(event)

    times = CompileTimes()
    event.register("numba:compile", times)
    return times


class _Compiled(Generic[P, R]):
    """A function that becomes machine code when it is called, or when a compiled function that calls it is compiled."""

    def __init__(self, function: Callable[P, R], calls: Sequence[Callable[..., Any]]) -> None:
        self._function, self._calls = function, calls
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        result: R = self._machine_code(*arguments, **named)
        return result

    @property
    def _numba_type_(self) -> Any:
        """Type that the compiler sees if compiled code refers to this function: that of the machine code."""
        return self._machine_code._numba_type_

    @cached_property
    def _machine_code(self) -> Any:
        from numba import njit  # noqa: PLC0415
        from numba.extending import register_jitable  # noqa: PLC0415

        for function in self._calls:
            register_jitable(function)
        try:
            code = njit(cache=True, nogil=True)(self._function)
        except RuntimeError:  # a read-only file system, as in a container: the cache cannot be extended
            code = njit(nogil=True)(self._function)
            with suppress(RuntimeError):  # the function was not defined in a file
                code._cache = _read_only_cache(self._function)
        own = self._function
        callees = [value for value in own.__globals__.values() if isinstance(value, _Compiled)]
        callees = [callee for callee in callees if callee._function.__code__.co_filename != own.__code__.co_filename]
        if file := getattr(code._cache, "_cache_file", None):
            # this code contains its callees: a change of their files makes it stale
            files = (getattr(callee._machine_code._cache, "_cache_file", None) for callee in callees)
            stamps = {other._source_stamp for other in files if other}
            file._source_stamp = (*file._source_stamp, *sorted(stamps))
            file._load_index = partial(_load_index, file._load_index)
        return code


def _load_index(load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (AttributeError, ImportError):  # written by another version, with a type that does not exist any more
        return {}


def _read_only_cache(function: Callable[..., Any]) -> Any:
    """Return the cache that was written next to the module while the image was built."""
    from numba.core import caching  # noqa: PLC0415

    class NextToModule(caching.InTreeCacheLocator):  # type: ignore[misc]
        def ensure_cache_path(self) -> None:
            """Do nothing: the folder cannot be created."""

    class Results(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (NextToModule,)

    class Cache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Results

        def save_overload(self, sig: Any, data: Any) -> None:
            """Do nothing: the file system is read-only. The next process compiles the function again."""

    return Cache(function)
