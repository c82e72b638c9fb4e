"""Read scenarios from TOML files. All errors of a file are reported together."""

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.policies.registry import FILE, fixed_count, make_policy, policy_factory
from autoscaler.policies.settings import Guards, Scaling
from bench.sections import (
    LED_PROTOCOLS,
    OPTIONS,
    SECTIONS,
    SIMULATION_ONLY,
    STAGES,
    Chain,
    Heading,
    Load,
    Payment,
    Simulation,
    Stage,
)
from contracts.membership import ReplicaSpeeds
from contracts.rebalance_protocol import PLAN_PROTOCOLS, RebalanceProtocol
from contracts.settings import Rule, Target, Values, contradictions, shared_fields, unknown_name
from contracts.validation import InvalidSettingsError, as_text, check_settings, parse, table_in
from loadgen.schedule import EACH_SECOND, Bursts, Spacing, Split
from loadgen.spec import RULES, LoadSpec, trace_problems
from loadgen.trace import EventTrace, Trace
from loadgen.workloads import find_workload
from partitioners import Partitioner, splits_keys

FOLDER: Final = Path(__file__).parent / "scenarios"
"""Folder with TOML files. Each table of a file is a scenario."""
STRESS: Final = FOLDER / "stress.toml"
DEFAULT_POLICY: Final = "tail-aware"
DEFAULT_PARTITIONS: Final = 5
SIMULATION: Final = "simulation"
CHANGES: Final = "set"
"""Table of a scenario with keys of any section, as `--set` has them."""


@dataclass(frozen=True, kw_only=True)
class Scenario(Heading):
    """A scenario with the sections of its file."""

    load: Load
    payment: Payment
    target: Target
    autoscaler: Scaling
    guards: Guards
    simulation: Simulation
    chain: Chain
    stages: tuple[Stage, ...] = ()
    """Groups after Payment, in order."""
    policy: dict[str, Any] = field(default_factory=dict)
    """Options of the policy, which validates them."""

    def load_spec(self) -> LoadSpec:
        """Return the load in the format of the generator."""
        sections = (self, self.load, self.payment, self.target)
        names = LoadSpec.__struct_fields__
        values = {name: getattr(section, name) for section in sections for name in names if hasattr(section, name)}
        return LoadSpec(**values)

    def with_trace(self, trace: Trace | EventTrace) -> "Scenario":
        """Return the scenario with the rate and duration of a trace.

        A trace with partitions also replaces the scenario's partitions and split. A trace of single events also
        replaces the times of events. Raises InvalidSettingsError if the trace has fewer partitions than replicas are
        requested, or does not support the scenario's faults or partitioner.
        """
        if problems := trace_problems(trace, self.load.split, self.load.partitioner, self.load.faults):
            raise InvalidSettingsError([f"{trace.name}: load.{field}: {text}" for field, text in problems])
        scenario = replace(self, duration_s=trace.duration_s)
        if trace.partitions is None:
            return scenario
        load = replace(self.load, split=Split.TABLE)
        if isinstance(trace, EventTrace):  # a partitioner may choose other partitions for its keys
            split = Split.TABLE if load.partitioner is Partitioner.EXPLICIT else Split.EVEN
            load = replace(load, split=split, spacing=Spacing.SMOOTH, **shared_fields(EACH_SECOND, Bursts))
        scenario = replace(
            scenario,
            load=load,
            payment=replace(self.payment, partitions=trace.partitions),
            simulation=replace(self.simulation, split=None),
        )
        found = [
            (key, text) for key, text in contradictions(scenario._values(), _RULES) if key.startswith("autoscaler.")
        ]
        if found:
            raise InvalidSettingsError([f"{trace.name}: {key}: {text}; --set {key}=…" for key, text in found])
        return scenario

    def at_stage(self, number: int) -> "Scenario":
        """Return a scenario in which stage `number` takes the place of Payment. Stages after Payment count from 0."""
        stage = self.stages[number]
        most = min(self.autoscaler.max_replicas, stage.partitions)
        initial = max(self.autoscaler.min_replicas, stage.initial_replicas)
        return replace(
            self,
            seed=(self.seed + 1 + number) % 2**31,
            payment=replace(self.payment, **shared_fields(stage, Payment)),
            autoscaler=replace(self.autoscaler, initial_replicas=initial, max_replicas=most),
            simulation=replace(self.simulation, failures_s=()),
            stages=(),
        )

    def shares(self) -> list[float]:
        """Return the share of the latency target that is reserved for each stage, Payment first. Their sum is 1."""
        others = [1 / (len(self.stages) + 1) if stage.share is None else stage.share for stage in self.stages]
        return [1 - sum(others), *others]

    def for_live(self) -> "Scenario":
        """Return the scenario for a live run. A rebalance protocol of another runtime is moved to `payment.runtime`.

        Raises InvalidSettingsError if the scenario can only be simulated.
        """
        payment = self.payment
        if payment.rebalance_protocol not in (*PLAN_PROTOCOLS, RebalanceProtocol.SHARE):
            runtime = str(payment.rebalance_protocol)
            payment = replace(payment, runtime=runtime, rebalance_protocol=RebalanceProtocol.INCREMENTAL)
        live = replace(self, payment=payment)
        if problems := _contradictions(live._values()) + self._only_simulated():
            raise InvalidSettingsError([f"{self.name}: {key}: {problem}" for key, problem in problems])
        return live

    def speeds(self) -> ReplicaSpeeds:
        """Return the speeds of the replicas."""
        return ReplicaSpeeds(**shared_fields(self.simulation, ReplicaSpeeds))

    def autoscaler_settings(self) -> dict[str, str]:
        """Return the environment variables of the autoscaler and its replicas, without the prefix TAILPACK_."""
        sections = (self.payment, self.target, self.autoscaler, self.guards, self.speeds())
        merged = {key: as_text(value) for section in sections for key, value in msgspec.to_builtins(section).items()}
        merged |= {"client": "java"} if self.payment.runtime in ("range", *LED_PROTOCOLS) else {}
        if self.payment.runtime in LED_PROTOCOLS:  # the autoscaler leads the replicas' group
            merged |= {"runtime": "", "consumers": "led"}
            merged["commit_age_s"] = str(self.payment.commit_interval_s / 2)
            merged["overhead_s"] = "0.025"  # they report no late events, which would correct μ: it is 1 % too high
        return {key.upper(): value for key, value in merged.items()} | {
            "PAYMENT_PARTITIONS": str(self.payment.partitions),
            "POLICY_OPTIONS": msgspec.json.encode(self.policy).decode() if self.policy else "",
        }

    def _only_simulated(self) -> list[tuple[str, str]]:
        defaults = {option.name: option.default for option in fields(Simulation)}
        changed = [name for name in SIMULATION_ONLY if getattr(self.simulation, name) != defaults[name]]
        changed += ["startup_s"] if self.simulation.startup_s == "gke" else []
        if self.payment.rebalance_protocol is RebalanceProtocol.SHARE:
            return [("payment.rebalance_protocol", "share groups are only simulated (tailpack simulate)")]
        if self.stages:
            hint = "run it with tailpack simulate, or live with tailpack autoscale and one file per stage"
            return [(STAGES, f"a live run has one group; {hint}")]
        if changed:
            keys = ", ".join(_dotted(SIMULATION, name) for name in changed)
            return [(keys, "only applies to simulations; use tailpack simulate, or leave it out")]
        try:
            make_policy(self.autoscaler.policy, options=self.policy)
        except ValueError as error:
            return [("autoscaler.policy", f"can only be simulated: {error}")]
        return []

    def _values(self) -> dict[str, Any]:
        return {
            _dotted(section, name): getattr(getattr(self, section) if section else self, name)
            for section, name in _fields()
        }


def scenario_names() -> list[str]:
    """Return the names of the built-in scenarios, the stress scenarios last."""
    return sorted(_delivered().keys() - table_in(STRESS)) + stress_names()


def stress_names() -> list[str]:
    """Return the names of the stress scenarios. Each tests a known weakness of policies."""
    return sorted(table_in(STRESS))


def _named_table(name_or_path: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the unparsed table of a scenario. Names are not case-sensitive."""
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return Path(name_or_path).stem, table_in(Path(name_or_path))
    name = name_or_path.lower()
    if name not in _delivered():
        raise InvalidSettingsError([f"scenario {name_or_path!r} is {unknown_name(name, scenario_names())}"])
    return name, deepcopy(_delivered()[name])


def load_scenario(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Read a scenario by its name, or by the path of a .toml file.

    overrides: dotted key ("autoscaler.policy") → value that overrides the file; None: the file's value. The section may
    be omitted if the key is unique ("policy"). Raises InvalidSettingsError with a sentence for each error.
    """
    name, raw = _named_table(name_or_path)
    problems = _make_sections(raw)
    problems += _override(raw, raw.pop(CHANGES), f"{CHANGES}.") + _override(raw, overrides or {})
    _add_defaults(raw, name)
    options = raw.pop(OPTIONS)
    stages, stage_problems = _stages(raw.pop(STAGES, []))
    problems += stage_problems
    valid: dict[str, dict[str, Any]] = {}
    for section, into in SECTIONS.items():
        values = raw[section] if section else {key: value for key, value in raw.items() if key not in SECTIONS}
        valid[section], errors = check_settings(values, into)
        problems += [_dotted(section, error) for error in errors]
    dotted = {_dotted(section, key): value for section, values in valid.items() for key, value in values.items()}
    dotted |= {STAGES: stages} if not stage_problems else {}
    problems += [f"{key}: {problem}" for key, problem in _contradictions(dotted)]
    if problems:
        raise InvalidSettingsError([_located(problem, name, overrides or {}) for problem in problems])
    parts: dict[str, Any] = {section: into(**valid[section]) for section, into in SECTIONS.items() if section}
    return Scenario(**valid[""], **parts, stages=stages, policy=options)


def _located(problem: str, name: str, overrides: Mapping[str, Any]) -> str:
    """Return the problem with its place: the option `--set` if an override caused it, else the file."""
    key, _, rest = problem.partition(" ")
    key = key.removesuffix(":")
    given = any(f".{key}".endswith(f".{changed}") for changed, value in overrides.items() if value is not None)
    if given and key == "autoscaler.policy":
        return f"--policy {rest}"
    return problem if key == "--set" else f"--set {problem}" if given else f"{name}.toml: {problem}"


def _stages(tables: Any) -> tuple[tuple[Stage, ...], list[str]]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return (), [f"{STAGES} = {tables!r}: must be a list of sections, [[{STAGES}]]"]
    stages, problems = [], []
    for number, table in enumerate(tables):
        try:
            stages.append(parse(table, Stage, where=f"{STAGES}[{number}]."))
        except InvalidSettingsError as error:
            problems += error.problems
    return tuple(stages), problems


@cache
def _delivered() -> dict[str, dict[str, Any]]:
    return {name: table for path in FOLDER.glob("*.toml") for name, table in table_in(path).items()}


def _make_sections(raw: dict[str, Any]) -> list[str]:
    """Add missing sections to `raw`; return a problem for each section that is not a table."""
    names = [name for name in (*SECTIONS, OPTIONS, CHANGES) if name]
    invalid = [name for name in names if not isinstance(raw.setdefault(name, {}), dict)]
    hint = {OPTIONS: "; the policy's name is autoscaler.policy"}
    problems = [f"{name} = {raw[name]!r}: must be a section, [{name}]{hint.get(name, '')}" for name in invalid]
    raw.update({name: {} for name in invalid})
    return problems


def _add_defaults(raw: dict[str, Any], name: str) -> None:
    scaling = raw["autoscaler"]
    raw.setdefault("name", name)
    with suppress(KeyError):  # a wrong name is reported with the other problems
        workload = find_workload(str(raw["load"]["workload"]))
        raw.setdefault("duration_s", workload.duration_s)
        raw["payment"].setdefault("partitions", workload.partitions or DEFAULT_PARTITIONS)
    raw["payment"].setdefault("partitions", DEFAULT_PARTITIONS)
    policy = scaling.setdefault("policy", DEFAULT_POLICY)
    if isinstance(policy, str):
        # workers load the file too, so its path must be absolute
        scaling["policy"] = str(Path(policy).absolute()) if FILE in policy else policy.lower()
        if count := fixed_count(policy):
            scaling.setdefault("initial_replicas", count)


def _override(raw: dict[str, Any], overrides: Mapping[str, Any], source: str = "--set ") -> list[str]:
    """Apply overrides to `raw`; return a problem for each key that matches no field or several fields."""
    problems = []
    for key, value in overrides.items():
        if value is None:
            continue
        if key.startswith(f"{STAGES}."):
            problems += _override_stage(raw.get(STAGES), key, value)
            continue
        option = key.removeprefix(f"{OPTIONS}.")
        matching = [(OPTIONS, option)] if option != key else _matching(key)
        if len(matching) != 1:
            known = [_dotted(section, name) for section, name in matching or _fields()]
            other = f"{unknown_name(key, known)} `tailpack show setting {key}` lists similar ones"
            problems.append(f"{source}{key}: " + (f"is ambiguous; known are {', '.join(known)}" if matching else other))
            continue
        section, name = matching[0]
        (raw[section] if section else raw)[name] = value
        if section != SIMULATION:
            raw[SIMULATION].pop(name, None)  # otherwise a simulation would ignore the override
    return problems


def _override_stage(tables: Any, key: str, value: Any) -> list[str]:
    _, name, field_name = (key + "..").split(".", 2)
    stages = {table.get("name"): table for table in tables or [] if isinstance(table, dict)}
    if name not in stages:
        return [f"--set {key}: {unknown_name(name, map(str, stages))}; it is {STAGES}.NAME.KEY"]
    stages[name][field_name.rstrip(".")] = value
    return []


def _matching(key: str) -> list[tuple[str, str]]:
    found = [(section, name) for section, name in _fields() if key in (_dotted(section, name), name)]
    return found if len(found) < 2 else [match for match in found if match[0] != SIMULATION]


def _fields() -> list[tuple[str, str]]:
    return [(section, option.name) for section, into in SECTIONS.items() for option in fields(into)]


def _dotted(section: str, name: str) -> str:
    return f"{section}.{name}".lstrip(".")


COORDINATING_POLICY: Final = "tail-aware"
"""Policy that can use forecasts of the previous stages."""
REPLICAS: Final = "autoscaler.{}_replicas"

_LOAD_KEYS: Final = {
    **{name: name for name in ("topology", "duration_s")},
    **{name: f"load.{name}" for name in ("workload", "trace", "split", "partitioner", "faults")},
    "partitions": "payment.partitions",
}
"""Field of LoadSpec → key in a scenario, for fields that the rules of LoadSpec read."""


def _contradictions(values: Values) -> list[tuple[str, str]]:
    load = {field: values[key] for field, key in _LOAD_KEYS.items() if key in values}
    found = [(_LOAD_KEYS[field], problem) for field, problem in contradictions(load, RULES)]
    return found + contradictions(values, _RULES)


def _policy_exists(values: Values) -> str | None:
    try:
        policy_factory(values["autoscaler.policy"])
    except ValueError as error:
        return str(error)
    return None


def _enough_partitions(key: str, values: Values) -> str | None:
    replicas, partitions = values[key], values["payment.partitions"]
    fits = replicas <= partitions
    return None if fits else f"must be at most {partitions}, the number of partitions, but is {replicas}"


def _grace_is_supported(values: Values) -> str | None:
    runtime, grace_s = values["payment.runtime"], values["autoscaler.absence_grace_s"]
    has_no_effect = runtime and grace_s
    return f"{grace_s:g} has no effect with {runtime}, an independent client" if has_no_effect else None


def _simulated_split_fits(values: Values) -> str | None:
    workload, split = find_workload(values["load.workload"]), values["simulation.split"]
    fits = split is None or (workload.partitions is None) == (split is not Split.TABLE)
    return None if fits else f"'{split}' does not fit {workload.name}; leave it out, or set load.split"


def _failures_in_time(values: Values) -> str | None:
    late = [at_s for at_s in values["simulation.failures_s"] if at_s >= values["duration_s"]]
    return f"{late[0]:g} must be before the end at {values['duration_s']} s" if late else None


def _stages_fit(values: Values) -> str | None:
    stages, min_replicas = values[STAGES], values["autoscaler.min_replicas"]
    names = ["payment", *(stage.name for stage in stages)]
    if duplicates := [name for name in names if names.count(name) > 1]:
        return f"two stages have the name {duplicates[0]}; rename one of them"
    if small := [stage for stage in stages if stage.partitions < min_replicas]:
        return f"{small[0].name} has {small[0].partitions} partitions, but autoscaler.min_replicas = {min_replicas}"
    others = sum(1 / len(names) if stage.share is None else stage.share for stage in stages)
    return None if others < 1 else f"their shares of W add up to {others:g}; the sum must be below 1"


def _policy_can_coordinate(values: Values) -> str | None:
    policy = values["autoscaler.policy"]
    ignored = values[STAGES] and values["chain.coordinated"] and policy != COORDINATING_POLICY
    return f"{policy} cannot coordinate; use {COORDINATING_POLICY}, or --set coordinated=false" if ignored else None


_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("load.partitioner", lambda values: splits_keys(values["payment.key_order"], values["load.partitioner"])),
    ("autoscaler.absence_grace_s", _grace_is_supported),
    ("autoscaler.policy", _policy_exists),
    *((key, partial(_enough_partitions, key)) for key in map(REPLICAS.format, ("min", "max", "initial"))),
    ("simulation.split", _simulated_split_fits),
    ("simulation.failures_s", _failures_in_time),
    (STAGES, _stages_fit),
    ("chain.coordinated", _policy_can_coordinate),
)
