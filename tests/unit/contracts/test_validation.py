"""Settings are read completely or not at all, and every mistake is reported at once."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from contracts.settings import Settings, Values, setting
from contracts.validation import InvalidSettingsError, from_environment, parse


def _gently(values: Values) -> str | None:
    return "mode fast needs 5 at most" if values["mode"] == "fast" and values["pressure_bar"] > 5 else None


@dataclass(frozen=True, kw_only=True)
class Pump(Settings):
    """Settings for these tests."""

    name: str
    """Its name."""
    litres: int = setting(4, "l", least=1)
    """Volume of
    a stroke."""
    pressure_bar: float = setting(1.5, "bar", above=0)
    """Pressure at the outlet."""
    mode: Literal["slow", "fast"] | float = setting("slow")
    """Operating mode."""
    dry_run: bool = setting(False)
    """Runs without water."""
    stroke_s: float = setting(1.0, "s", least=0.001)
    """Duration of a stroke."""
    pauses_s: tuple[float, ...] = setting(())
    """Pauses between strokes."""
    inlet: str = setting("", known=("", "north", "south"))
    """Side of the inlet."""

    RULES = (("pressure_bar", _gently),)


def problems_of(values: dict[str, Any], **how: Any) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        parse(values, Pump, **how)
    assert str(wrong.value) == "; ".join(wrong.value.problems)
    return wrong.value.problems


def test_every_mistake_is_reported_at_once() -> None:
    values = {"litres": 0, "pressure_bar": "high", "mode": "medium", "colour": "red", "dry_run": 1}
    problems = problems_of(values, where="pump.")
    names = ["colour", "name", "litres", "pressure_bar", "mode", "dry_run"]
    assert [problem.partition(" ")[0].rstrip(":") for problem in problems] == [f"pump.{name}" for name in names]
    assert ("missing" in problems[1], "at least 1" in problems[2]) == (True, True)
    assert "slow, fast, or a number" in problems[4]


def test_a_rule_across_fields_is_checked_too() -> None:
    values = {"name": "a", "litres": 1, "mode": "fast", "pressure_bar": 6.0}
    assert problems_of(values, where="pump.") == ["pump.pressure_bar = 6.0: mode fast needs 5 at most"]


def test_a_record_built_in_code_is_checked_too() -> None:
    with pytest.raises(ValueError, match=r"litres = 0: must be at least 1; pressure_bar = inf: must be more than 0"):
        Pump(name="a", litres=0, pressure_bar=float("inf"))
    with pytest.raises(ValueError, match=r"inlet = 'west': unknown; known are north, south"):
        Pump(name="a", inlet="west")


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("25s", 25), ("2m", 120), ("1.5 h", 5400)])
def test_a_duration_can_have_a_unit(text: str, seconds: float) -> None:
    assert parse({"name": "a", "stroke_s": text, "pauses_s": [text, 3]}, Pump).pauses_s == (seconds, 3)
    environ = {"TAILPACK_NAME": "10s", "TAILPACK_STROKE_S": text, "TAILPACK_PAUSES_S": f"1,{text}"}
    read = from_environment(environ, Pump)
    assert (read.name, read.stroke_s, read.pauses_s) == ("10s", seconds, (1, seconds))


def test_an_invalid_duration_is_refused_with_examples() -> None:
    (unreadable,), (short,) = (problems_of({"name": "a", "stroke_s": text}) for text in ("5 days", "0.1ms"))
    assert "500ms, 25s or 2m" in unreadable
    assert "at least 0.001 s, at most 86400 s" in short
