"""A scenario: the question that a run asks, read from a TOML file. Every mistake in it is named at once."""

import tomllib
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.contradictions import contradictions
from bench.sections import SECTIONS, Autoscaler, Heading, Load, Payment, Target
from contracts.validation import InvalidSettingsError, parse
from loadgen.spec import LoadSpec

FOLDER: Final = Path(__file__).parent / "scenarios"


class Scenario(Heading, frozen=True, kw_only=True):
    """One question, its sections as in the file."""

    load: Load
    payment: Payment
    target: Target
    autoscaler: Autoscaler

    def load_spec(self) -> LoadSpec:
        """Return what the generator needs."""
        return LoadSpec(
            topology=self.topology,
            workload=self.load.workload,
            spacing=self.load.spacing,
            split=self.load.split,
            grouping=self.load.grouping,
            seed=self.seed,
            duration_s=self.duration_s,
            partitions=self.payment.partitions,
            latency_target_s=self.target.latency_target_s,
            invalid_share=self.load.invalid_share,
        )


def scenario_names() -> list[str]:
    """Return the names of the scenarios that are delivered."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_scenario(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Read a scenario by its name, or by the path of a .toml file.

    overrides: dotted key ("autoscaler.policy") → value, put over what the file says; the section may be left out
    where only one has that key ("policy"). None leaves the file's value.
    Raises InvalidSettingsError with one sentence for every mistake, each with file and dotted key.
    """
    path = _path(name_or_path)
    raw = _read(path)
    problems = _override(raw, overrides or {})
    parts: dict[str, msgspec.Struct] = {}
    good: dict[str, Any] = {}
    for section, into, values in _sections(raw):
        prefix = f"{section}." if section else ""
        try:
            if not isinstance(values, dict):
                raise InvalidSettingsError([f"{section} = {values!r}: must be a section, [{section}]"])
            parts[section] = parse(values, into, where=prefix)
        except InvalidSettingsError as wrong:
            problems += [problem + _choices(problem, into, prefix) for problem in wrong.problems]
        if isinstance(values, dict):
            good |= _well_formed(values, into, prefix)
    problems += [f"{key}: {problem}" for key, problem in contradictions(good)]
    if problems:
        raise InvalidSettingsError([f"{path.name}: {problem}" for problem in problems])
    heading = msgspec.structs.asdict(parts.pop(""))
    return msgspec.convert(heading | parts, Scenario)


def _path(name_or_path: str) -> Path:
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return Path(name_or_path)
    if name_or_path not in scenario_names():
        known = ", ".join(scenario_names())
        raise InvalidSettingsError([f"scenario {name_or_path!r} is unknown; known are {known}; or name a .toml file"])
    return FOLDER / f"{name_or_path}.toml"


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as missing:
        raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise InvalidSettingsError([f"{path}: is not TOML: {wrong}"]) from wrong


def _override(raw: dict[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    """Change `raw`; return a problem for each key that names no field, or more than one."""
    problems = []
    keys = [f"{section}.{name}".lstrip(".") for section, into in SECTIONS.items() for name in into.__struct_fields__]
    for key, value in overrides.items():
        if value is None:
            continue
        matching = [known for known in keys if key in (known, known.rpartition(".")[2])]
        if len(matching) != 1:
            known = ", ".join(matching or keys)
            problems.append(f"override {key}: {'is ambiguous' if matching else 'unknown'}; known are {known}")
            continue
        section, _, name = matching[0].rpartition(".")
        table = raw.setdefault(section, {}) if section else raw
        if isinstance(table, dict):
            table[name] = value
    return problems


def _sections(raw: dict[str, Any]) -> Iterator[tuple[str, type[msgspec.Struct], Any]]:
    """Yield name, type and values of each section; what stands above them has the name ""."""
    for section, into in SECTIONS.items():
        if section:
            yield section, into, raw.get(section, {})
        else:
            yield section, into, {key: value for key, value in raw.items() if key not in SECTIONS}


def _well_formed(values: Mapping[str, Any], into: type[msgspec.Struct], prefix: str) -> dict[str, Any]:
    """Return dotted key → value of the fields that are right by themselves, defaults included."""
    good = {}
    for field in msgspec.structs.fields(into):
        if field.name in values:
            try:
                good[prefix + field.name] = msgspec.convert(values[field.name], field.type)
            except msgspec.ValidationError:
                continue  # `parse` has said so
        elif not field.required:
            good[prefix + field.name] = field.default
    return good


def _choices(problem: str, into: type[msgspec.Struct], prefix: str) -> str:
    """Return what could have stood there, where it is one of a few words."""
    for field in msgspec.structs.fields(into):
        if isinstance(field.type, EnumMeta) and problem.startswith(f"{prefix}{field.name} ="):
            return f"; known are {', '.join(field.type.__members__.values())}"
    if not prefix and ": unknown;" in problem:
        return f", and the sections {', '.join(filter(None, SECTIONS))}"
    return ""
