"""Checks the exercises of the lessons. An answer runs in a process of its own, with limits of time and memory.

This protects against mistakes, not against malice.
"""

import multiprocessing
import os
import resource
import socket
import warnings
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from signal import SIGXCPU
from typing import Any, Final, Never

import msgspec
import psutil

from tailpack.errors import TailpackError
from tailpack.lab.course import LESSONS, load

SEED: Final = "TAILPACK_LESSON_SEED"
MEMORY_BYTES: Final = 1 << 30
"""Memory that an answer may allocate."""
FILE_BYTES: Final = 10_000_000
"""Size of a file that an answer may write."""
MOST_CHARS: Final = 200
"""Characters of a wrong answer that a message has, and characters of the hint behind them."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the check of an answer."""

    lesson: str
    passed: bool
    cases: int
    """Cases that passed."""
    seed_id: str
    """Hash of the seed of the cases."""
    message: str = ""
    """Form of the answer, first wrong case and a hint; never the right answer."""

    def __str__(self) -> str:
        return f"lesson {self.lesson}: " + (f"passed, {self.cases} cases" if self.passed else self.message)

    def _repr_markdown_(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self}"


def exercises() -> dict[str, Any]:
    """Return number → `exercises.Exercise` of all lessons."""
    found: dict[str, Any] = load(LESSONS / "exercises.py").EXERCISES
    return found


def number_of(lesson: str | int) -> str:
    """Return the number of a lesson as two digits. Raises TailpackError if there is no such lesson."""
    number = str(lesson).zfill(2)
    if number not in (known := exercises()):
        raise TailpackError(f"no lesson {lesson}; there are {', '.join(known)}")
    return number


def check(lesson: str | int, answer: Any) -> Verdict:
    """Check the answer to an exercise: a function, a class, or the path of a file that defines it.

    Cases are drawn from the environment variable TAILPACK_LESSON_SEED, which graders keep secret; without it, they are
    public. Raises TailpackError if there is no such lesson or file.
    """
    number = number_of(lesson)
    exercise, seed = exercises()[number], os.environ.get(SEED, "public")
    if isinstance(answer, str | Path) and not Path(answer).is_file():
        raise TailpackError(f"{answer}: no such file")
    context = multiprocessing.get_context("fork")  # an answer from a notebook cannot be sent to another process
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_judge, args=(exercise, answer, f"{seed}-{number}", theirs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads, which the child does not use
        process.start()
    theirs.close()
    cases, message, has_time = 0, "the process ended before all cases were checked", True
    with suppress(EOFError):
        while has_time := ours.poll(20 + 5 * exercise.cpu_s):
            cases, message = ours.recv()
    process.kill()
    process.join()
    if process.exitcode == -SIGXCPU or not has_time:
        message = f"case {cases + 1} took too long: all may take {exercise.cpu_s} s of processor time"
    stop = "" if message.endswith((".", "?")) else "."
    wrong = message and f"{message}{stop} Expected: {exercise.form}"
    seed_id = sha256(seed.encode()).hexdigest()[:8]
    return Verdict(lesson=number, passed=not message, cases=cases, seed_id=seed_id, message=wrong)


def _judge(exercise: Any, answer: Any, seed: str, pipe: Any) -> None:
    """Run the cases in this process, and send how many passed and what is wrong, after each case."""
    os.dup2(2, 1)  # an answer may print, but standard output belongs to the caller
    os.environ.pop(SEED, None)
    allowed = psutil.Process().memory_info().vms + MEMORY_BYTES
    with suppress(OSError, ValueError):  # not every system limits the address space
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    resource.setrlimit(resource.RLIMIT_CPU, (exercise.cpu_s, exercise.cpu_s + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    cases = 0
    try:
        socket.socket.connect = _no_network  # type: ignore[method-assign]
        found = getattr(load(Path(answer)), exercise.answer) if isinstance(answer, str | Path) else answer
        for whole in exercise.cases(found, Random(seed)):
            hint = whole if len(whole) <= 2 * MOST_CHARS else f"{whole[:MOST_CHARS]} … {whole[-MOST_CHARS:]}"
            pipe.send((cases, hint or "the process ended before all cases were checked"))
            if hint:
                return
            cases += 1
        pipe.send((cases, ""))
    except BaseException as error:  # an answer may raise anything
        words = " ".join(str(error).split())[:200]
        pipe.send((cases, f"case {cases + 1} raised {type(error).__name__}{words and ': '}{words}"))


def _no_network(*_: object, **__: object) -> Never:
    raise OSError("an answer has no network")
