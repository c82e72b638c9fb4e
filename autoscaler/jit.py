"""The one module that knows the just-in-time compiler (Numba): loops over events and partitions at machine speed."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], calls: Sequence[Callable[..., Any]] = ()) -> Callable[P, R]:
    """Return `function` as machine code. It may use numbers and numpy arrays only, compiled functions and `calls`.

    calls: functions that are interpreted everywhere else.

    The code is kept beside the module, so that only the first call on a machine waits for the compiler (seconds). An
    image brings it along, and it is read also where nothing can be written. The compiler itself is imported by the
    first call of a process: whoever computes nothing does not wait for it.
    """
    return _Compiled(function, calls)


def load_compiler(on_compile: Callable[[], None] | None = None) -> None:
    """Import the compiler now, before a first call that must not wait for it.

    on_compile: called when this process has to compile a function whose machine code is not kept, for the first time.
    """
    times = _compile_times()
    if on_compile is not None:
        times.on_compile = on_compile


def compiling_s() -> float:
    """Return how long this process has compiled since `load_compiler`."""
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
        self._function = function
        self._calls = calls
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        result: R = self._machine_code(*arguments, **named)
        return result

    @property
    def _numba_type_(self) -> Any:
        """What the compiler takes this for where compiled code names it: the machine code."""
        return self._machine_code._numba_type_

    @cached_property
    def _machine_code(self) -> Any:
        from numba import njit  # noqa: PLC0415
        from numba.extending import register_jitable  # noqa: PLC0415

        for one in self._calls:
            register_jitable(one)
        try:
            code = njit(cache=True, nogil=True)(self._function)
        except RuntimeError:  # the file system cannot be written to, as in a container: nothing more can be kept there
            code = njit(nogil=True)(self._function)
            with suppress(RuntimeError):  # it is of no file
                code._cache = _kept(self._function)
        own = self._function
        others = [one for one in own.__globals__.values() if isinstance(one, _Compiled)]
        others = [one for one in others if one._function.__code__.co_filename != own.__code__.co_filename]
        if (file := _file(code)) and others:  # stale, too, when one of their files changes: they are in this code
            stamps = {other._source_stamp for one in others if (other := _file(one._machine_code))}
            file._source_stamp = (*file._source_stamp, *sorted(stamps))
        return code


def _file(code: Any) -> Any:
    """Return the file in which machine code is kept; None where it is not."""
    return getattr(code._cache, "_cache_file", None)


def _kept(function: Callable[..., Any]) -> Any:
    """Return the machine code that was kept beside the module when that could be written to, as an image is built."""
    from numba.core import caching  # noqa: PLC0415

    class Beside(caching.InTreeCacheLocator):  # type: ignore[misc]
        def ensure_cache_path(self) -> None:
            """It is as it is."""

    class Kept(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Beside,)

    class Cache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Kept

        def save_overload(self, sig: Any, data: Any) -> None:
            """What is compiled now is compiled again by the next process."""

    return Cache(function)
