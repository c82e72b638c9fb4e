"""The course: its exercises and recordings are in docs/lessons of a clone."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import msgspec

from tailpack.errors import TailpackError

LESSONS: Final = Path(__file__).parents[2] / "docs" / "lessons"


def load(path: Path) -> Any:
    """Import a Python file, and return its module. Raises TailpackError if there is no such file."""
    spec = spec_from_file_location(f"course_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise TailpackError(f"{path}: no such Python file; the lessons are in a clone of the repository")
    module = sys.modules[spec.name] = module_from_spec(spec)  # classes of the file find their module by its name
    spec.loader.exec_module(module)
    return module


def check(lesson: str | int, answer: Any) -> Any:
    """Check the answer to an exercise: a function, a class, or the path of a file that defines it. Return a `Verdict`.

    Cases are drawn from the environment variable TAILPACK_LESSON_SEED, which graders keep secret; without it, they are
    public. The answer runs in a process of its own. Raises TailpackError if there is no such lesson or file.
    """
    return load(LESSONS / "checker.py").check(lesson, answer)


def recorded(name: str) -> Any:
    """Return a recording of a live measurement, which a lesson shows by default: docs/lessons/data/NAME.json."""
    return msgspec.json.decode((LESSONS / "data" / f"{name}.json").read_bytes())
