"""Settings are read whole or not at all, and every mistake in them is named at once."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.settings import Settings, Values, setting
from contracts.validation import InvalidSettingsError, from_environment, parse


def _gently(values: Values) -> str | None:
    return "mode fast needs 5 at most" if values["mode"] == "fast" and values["pressure_bar"] > 5 else None


@dataclass(frozen=True, kw_only=True)
class Pump(Settings):
    """Settings made up for these tests."""

    name: str
    """What it is called."""
    litres: int = setting(4, "l", least=1)
    """What a stroke
    moves."""
    pressure_bar: float = setting(1.5, "bar", above=0)
    """Behind it."""
    mode: Literal["slow", "fast"] | float = setting("slow")
    """How it runs."""
    dry_run: bool = setting(False)
    """Without water."""
    stroke_s: float = setting(1.0, "s", least=0.001)
    """How long a stroke takes."""
    pauses_s: tuple[float, ...] = setting(())
    """Between strokes."""
    inlet: str = setting("", known=("", "north", "south"))
    """Where it draws from."""

    RULES = (("pressure_bar", _gently),)


def problems_of(values: dict[str, Any], **how: Any) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        parse(values, Pump, **how)
    assert str(wrong.value) == "; ".join(wrong.value.problems)
    return wrong.value.problems


def test_every_mistake_is_named_at_once() -> None:
    values = {"litres": 0, "pressure_bar": "high", "mode": "medium", "colour": "red", "dry_run": 1}
    problems = problems_of(values, where="pump.")
    assert [problem.partition(" ")[0].rstrip(":") for problem in problems] == [
        "pump.colour",
        "pump.name",
        "pump.litres",
        "pump.pressure_bar",
        "pump.mode",
        "pump.dry_run",
    ]
    assert problems[0].endswith(
        "unknown; known are name, litres, pressure_bar, mode, dry_run, stroke_s, pauses_s, inlet"
    )
    assert problems[1] == "pump.name: missing"
    assert problems[2] == "pump.litres = 0: must be at least 1"
    assert problems[4] == "pump.mode = 'medium': unknown; known are slow, fast, or a number"


def test_a_rule_across_fields_is_a_problem_too() -> None:
    values = {"name": "a", "litres": 1, "mode": "fast", "pressure_bar": 6.0}
    assert problems_of(values, where="pump.") == ["pump.pressure_bar = 6.0: mode fast needs 5 at most"]


def test_a_record_made_by_hand_is_held_to_the_same() -> None:
    with pytest.raises(ValueError, match=r"litres = 0: must be at least 1; pressure_bar = inf: must be more than 0"):
        Pump(name="a", litres=0, pressure_bar=float("inf"))
    with pytest.raises(ValueError, match=r"inlet = 'west': unknown; known are north, south"):
        Pump(name="a", inlet="west")


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("25s", 25), ("2m", 120), ("1.5 h", 5400)])
def test_a_length_of_time_may_have_its_unit(text: str, seconds: float) -> None:
    assert parse({"name": "a", "stroke_s": text, "pauses_s": [text, 3]}, Pump).pauses_s == (seconds, 3)
    environ = {"TAILPACK_NAME": "10s", "TAILPACK_STROKE_S": text, "TAILPACK_PAUSES_S": f"1,{text}"}
    read = from_environment(environ, Pump)
    assert (read.name, read.stroke_s, read.pauses_s) == ("10s", seconds, (1, seconds))


def test_what_is_no_length_of_time_is_refused_with_examples() -> None:
    assert problems_of({"name": "a", "stroke_s": "5 days"}) == [
        "stroke_s = '5 days': Expected `float`, got `str`, or a length of time such as 500ms, 25s or 2m"
    ]
    assert problems_of({"name": "a", "stroke_s": "0.1ms"}) == [
        "stroke_s = '0.1ms': must be at least 0.001 s, at most 86400 s"
    ]


NAMES = st.sampled_from([f"TAILPACK_{name}" for name in ("NAME", "LITRES", "MODE")])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, st.text() | st.integers().map(str) | st.just("fast")))
def test_whatever_the_environment_holds_is_read_or_refused_by_name(environ: dict[str, str]) -> None:
    problems: list[str] = []
    try:
        name = from_environment(environ, Pump).name
    except InvalidSettingsError as wrong:
        name, problems = "", wrong.problems
    assert (name != "") != bool(problems)
    assert all(problem.startswith("TAILPACK_") for problem in problems)
