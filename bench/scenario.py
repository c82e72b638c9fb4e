"""A scenario: the question that a run asks, read from a TOML file. Every mistake in it is named at once."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.policies.registry import FILE, fixed_count, make_policy, policy_factory
from autoscaler.policies.settings import Guards, Scaling
from bench.sections import OPTIONS, SECTIONS, STAGES, WORLDS_ONLY, Chain, Heading, Load, Payment, Simulation, Stage
from contracts.membership import ReplicaSpeeds
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import Rule, Target, Values, contradictions, shared_fields, unknown_name
from contracts.validation import InvalidSettingsError, as_text, check_settings, parse, present_names, table_in
from grouping import Partitioner, splits_keys
from loadgen.schedule import EACH_SECOND, Bursts, Spacing, Split
from loadgen.spec import RULES, LoadSpec, trace_problems
from loadgen.trace import EventTrace, Trace
from loadgen.workloads import WORKLOADS

FOLDER: Final = Path(__file__).parent / "scenarios"
"""TOML files in which each table is a scenario."""
STRESS: Final = FOLDER / "stress.toml"
DEFAULT_POLICY: Final = "tail-aware"
DEFAULT_PARTITIONS: Final = 5
SIMULATION: Final = "simulation"


@dataclass(frozen=True, kw_only=True)
class Scenario(Heading):
    """One question, its sections as in the file."""

    load: Load
    payment: Payment
    target: Target
    autoscaler: Scaling
    guards: Guards
    simulation: Simulation
    chain: Chain
    stages: tuple[Stage, ...] = ()
    """Groups behind Payment, in their order."""
    policy: dict[str, Any] = field(default_factory=dict)
    """Options of the policy, which checks them itself."""

    def load_spec(self) -> LoadSpec:
        """Return the load as the generator reads it."""
        sections = (self, self.load, self.payment, self.target)
        names = LoadSpec.__struct_fields__
        return LoadSpec(**{name: getattr(one, name) for one in sections for name in names if hasattr(one, name)})

    def playing(self, trace: Trace | EventTrace) -> "Scenario":
        """Return the scenario with a trace in place of its rate and duration.

        Partitions and split stay as they are, so that a workload with a table of its own spreads the trace's events as
        its own. A trace that states partitions sets both itself; one of single events their times, too.
        Raises InvalidSettingsError where more replicas are asked for than it has partitions, for faults that it cannot
        have, and for a partitioner that would ignore its table.
        """
        if wrong := trace_problems(trace, self.load.split, self.load.partitioner, self.load.faults):
            raise InvalidSettingsError([f"{trace.name}: load.{field}: {said}" for field, said in wrong])
        scenario = replace(self, duration_s=trace.duration_s)
        if trace.partitions is None:
            return scenario
        load = replace(self.load, split=Split.TABLE)
        if isinstance(trace, EventTrace):  # a partitioner may choose again for events that have keys of their own
            split = Split.TABLE if load.partitioner is Partitioner.EXPLICIT else Split.EVEN
            load = replace(load, split=split, spacing=Spacing.SMOOTH, **shared_fields(EACH_SECOND, Bursts))
        scenario = replace(
            scenario,
            load=load,
            payment=replace(self.payment, partitions=trace.partitions),
            simulation=replace(self.simulation, split=None),
        )
        if wrong := [one for one in contradictions(scenario._values(), _RULES) if one[0].startswith("autoscaler.")]:
            raise InvalidSettingsError([f"{trace.name}: {key}: {said}; --set {key}=…" for key, said in wrong])
        return scenario

    def at_stage(self, number: int) -> "Scenario":
        """Return the scenario of stage `number` behind Payment, from 0, as if the stage were Payment."""
        stage = self.stages[number]
        most = min(self.autoscaler.max_replicas, stage.partitions)
        return replace(
            self,
            seed=(self.seed + 1 + number) % 2**31,
            payment=replace(self.payment, **shared_fields(stage, Payment)),
            autoscaler=replace(self.autoscaler, initial_replicas=stage.initial_replicas, max_replicas=most),
            simulation=replace(self.simulation, failures_s=()),
            stages=(),
        )

    def shares(self) -> list[float]:
        """Return the share of W that each stage has in any case, Payment first; they add up to 1."""
        others = [1 / (len(self.stages) + 1) if one.share is None else one.share for one in self.stages]
        return [1 - sum(others), *others]

    def for_live(self) -> "Scenario":
        """Return the scenario as live processes understand it: where the delivery names a runtime, that runtime.

        Raises InvalidSettingsError for what can only be simulated.
        """
        payment = self.payment
        if payment.rebalance_protocol in RUNTIMES:
            payment = replace(
                payment, runtime=str(payment.rebalance_protocol), rebalance_protocol=RebalanceProtocol.INCREMENTAL
            )
        live = replace(self, payment=payment)
        if problems := _contradictions(live._values()) + self._only_simulated():
            raise InvalidSettingsError([f"{self.name}: {key}: {problem}" for key, problem in problems])
        return live

    def speeds(self) -> ReplicaSpeeds:
        """Return how replicas differ."""
        return ReplicaSpeeds(**shared_fields(self.simulation, ReplicaSpeeds))

    def autoscaler_settings(self) -> dict[str, str]:
        """Return the settings of the autoscaler and its replicas, without TAILPACK_ in front."""
        sections = (self.payment, self.target, self.autoscaler, self.guards, self.speeds())
        merged = {key: as_text(value) for section in sections for key, value in msgspec.to_builtins(section).items()}
        return {key.upper(): value for key, value in merged.items()} | {
            "PAYMENT_PARTITIONS": str(self.payment.partitions),
            "POLICY_OPTIONS": msgspec.json.encode(self.policy).decode() if self.policy else "",
        }

    def _only_simulated(self) -> list[tuple[str, str]]:
        """Return (key, problem) of the settings that live processes do not have."""
        plain = {one.name: one.default for one in fields(Simulation)}
        other = [name for name in WORLDS_ONLY if getattr(self.simulation, name) != plain[name]]
        other += ["startup_s"] if self.simulation.startup_s == "gke" else []
        if self.payment.rebalance_protocol is RebalanceProtocol.SHARE:
            return [("payment.rebalance_protocol", "share groups are only simulated (tailpack simulate)")]
        if self.stages:
            said = "a run has one group; live: tailpack autoscale with a file for each stage; or tailpack simulate"
            return [(STAGES, said)]
        if other:
            said = "only simulated (tailpack simulate); live, replicas and what is seen of them are as they are"
            return [(", ".join(_dotted(SIMULATION, name) for name in other), said)]
        try:
            make_policy(self.autoscaler.policy, options=self.policy)
        except ValueError as wrong:
            return [("autoscaler.policy", f"can only be simulated: {wrong}")]
        return []

    def _values(self) -> dict[str, Any]:
        return {
            _dotted(section, name): getattr(getattr(self, section) if section else self, name)
            for section, name in _fields()
        }


def scenario_names() -> list[str]:
    """Return the names of the delivered scenarios, the stress scenarios last."""
    return sorted(_delivered().keys() - table_in(STRESS)) + stress_names()


def stress_names() -> list[str]:
    """Return the names of the stress scenarios: each is made to break policies in one way."""
    return sorted(table_in(STRESS))


def _named_table(name_or_path: str) -> tuple[str, dict[str, Any]]:
    """Return name and content of a scenario as its file has it. Names ignore case."""
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return Path(name_or_path).stem, table_in(Path(name_or_path))
    name = name_or_path.lower()
    if name not in _delivered():
        raise InvalidSettingsError([f"scenario {name_or_path!r} is {unknown_name(name, scenario_names())}"])
    return name, deepcopy(_delivered()[name])


def load_scenario(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Read a scenario by its name, or by the path of a .toml file.

    overrides: dotted key ("autoscaler.policy") → value, put over what the file says; the section may be left out
    where only one has that key ("policy"). None leaves the file's value.
    Raises InvalidSettingsError with one sentence for every mistake, each with file and dotted key.
    """
    name, raw = _named_table(name_or_path)
    problems = _make_sections(raw) + _override(raw, overrides or {})
    _add_defaults(raw, name)
    options = raw.pop(OPTIONS)
    stages, wrong_stages = _stages(raw.pop(STAGES, []))
    problems += wrong_stages
    good: dict[str, dict[str, Any]] = {}
    for section, into in SECTIONS.items():
        values = raw[section] if section else {key: value for key, value in raw.items() if key not in SECTIONS}
        good[section], wrong = check_settings(values, into)
        problems += [_dotted(section, one) for one in wrong]
    dotted = {_dotted(section, key): value for section, values in good.items() for key, value in values.items()}
    dotted |= {STAGES: stages} if not wrong_stages else {}
    problems += [f"{key}: {problem}" for key, problem in _contradictions(dotted)]
    if problems:
        raise InvalidSettingsError([f"{name}.toml: {problem}" for problem in problems])
    parts: dict[str, Any] = {section: into(**good[section]) for section, into in SECTIONS.items() if section}
    return Scenario(**good[""], **parts, stages=stages, policy=options)


def _stages(tables: Any) -> tuple[tuple[Stage, ...], list[str]]:
    """Return the stages that are written well, and a sentence for each mistake in the others."""
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        return (), [f"{STAGES} = {tables!r}: must be a list of sections, [[{STAGES}]]"]
    stages, problems = [], []
    for number, table in enumerate(tables):
        try:
            stages.append(parse(table, Stage, where=f"{STAGES}[{number}]."))
        except InvalidSettingsError as wrong:
            problems += wrong.problems
    return tuple(stages), problems


@cache
def _delivered() -> dict[str, dict[str, Any]]:
    return {name: table for path in FOLDER.glob("*.toml") for name, table in table_in(path).items()}


def _make_sections(raw: dict[str, Any]) -> list[str]:
    """Make every section a table; return a problem for each that is something else in the file."""
    wrong = [one for one in (*SECTIONS, OPTIONS) if one and not isinstance(raw.setdefault(one, {}), dict)]
    hint = {OPTIONS: "; the policy's name is autoscaler.policy"}
    problems = [f"{one} = {raw[one]!r}: must be a section, [{one}]{hint.get(one, '')}" for one in wrong]
    raw.update({one: {} for one in wrong})
    return problems


def _add_defaults(raw: dict[str, Any], name: str) -> None:
    """Add what follows from the file's name and the workload, where the file leaves it out."""
    workload, scaling = WORKLOADS.get(str(raw["load"].get("workload"))), raw["autoscaler"]
    raw.setdefault("name", name)
    if workload:
        raw.setdefault("duration_s", workload.duration_s)
    raw["payment"].setdefault("partitions", (workload and workload.partitions) or DEFAULT_PARTITIONS)
    policy = scaling.setdefault("policy", DEFAULT_POLICY)
    if isinstance(policy, str):
        scaling["policy"] = str(Path(policy).absolute()) if FILE in policy else policy.lower()  # others load it, too
        if count := fixed_count(policy):
            scaling.setdefault("initial_replicas", count)


def _override(raw: dict[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    """Change `raw`; return a problem for each key that names no field, or more than one."""
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
            problems.append(f"--set {key}: " + (f"is ambiguous; known are {', '.join(known)}" if matching else other))
            continue
        section, name = matching[0]
        present = {name: value} if section == OPTIONS else present_names({name: value}, SECTIONS[section])
        (raw[section] if section else raw).update(present)
        if section != SIMULATION:
            raw[SIMULATION].pop(next(iter(present), ""), None)  # the override holds in the simulated world, too
    return problems


def _override_stage(tables: Any, key: str, value: Any) -> list[str]:
    _, name, field_name = (key + "..").split(".", 2)
    stages = {one.get("name"): one for one in tables or [] if isinstance(one, dict)}
    if name not in stages:
        return [f"--set {key}: {unknown_name(name, map(str, stages))}; it is {STAGES}.NAME.KEY"]
    stages[name][field_name.rstrip(".")] = value
    return []


def _matching(key: str) -> list[tuple[str, str]]:
    former = [(section, name) for section, into in SECTIONS.items() for name in (*into.renamed(), *into.REMOVED)]
    found = [(section, name) for section, name in _fields() + former if key in (_dotted(section, name), name)]
    return found if len(found) < 2 else [one for one in found if one[0] != SIMULATION]


def _fields() -> list[tuple[str, str]]:
    return [(section, one.name) for section, into in SECTIONS.items() for one in fields(into)]


def _dotted(section: str, name: str) -> str:
    return f"{section}.{name}".lstrip(".")


AS_ONE: Final = "tail-aware"
"""The policy that uses forecasts of the stages before."""

_LOAD_KEYS: Final = {
    **{name: name for name in ("topology", "duration_s")},
    **{name: f"load.{name}" for name in ("workload", "trace", "split", "partitioner", "invalid_share", "faults")},
    "partitions": "payment.partitions",
}
"""Field of LoadSpec → where it stands in a scenario, for the fields that its rules read."""


def _orders_have_a_service(values: Values) -> str | None:
    alone = values["topology"] == "payment-only" and values["load.entry"] == "http"
    return "payment-only has no Order service; take a scenario of the pipeline" if alone else None


def _contradictions(values: Values) -> list[tuple[str, str]]:
    load = {field: values[key] for field, key in _LOAD_KEYS.items() if key in values}
    found = [(_LOAD_KEYS[field], problem) for field, problem in contradictions(load, RULES)]
    return found + contradictions(values, _RULES)


def _known_policy(values: Values) -> str | None:
    try:
        policy_factory(values["autoscaler.policy"])
    except ValueError as refused:
        return str(refused)
    return None


def _enough_partitions(key: str, values: Values) -> str | None:
    replicas, partitions = values[key], values["payment.partitions"]
    fits = replicas <= partitions
    return None if fits else f"{replicas} is more than the {partitions} partitions; the rest would own nothing"


def _order_is_kept(values: Values) -> str | None:
    return splits_keys(values["payment.key_order"], values["load.partitioner"])


def _grace_is_ours(values: Values) -> str | None:
    runtime, grace_s = values["payment.runtime"], values["autoscaler.absence_grace_s"]
    means_nothing = runtime and grace_s
    return f"{grace_s:g} cannot be kept by {runtime}, which places partitions itself" if means_nothing else None


def _simulated_split_fits(values: Values) -> str | None:
    workload, split = WORKLOADS[values["load.workload"]], values["simulation.split"]
    fits = split is None or (workload.partitions is None) == (split is not Split.TABLE)
    return None if fits else f"'{split}' does not fit {workload.name}; leave it out, or say load.split"


def _failures_in_time(values: Values) -> str | None:
    late = [at_s for at_s in values["simulation.failures_s"] if at_s >= values["duration_s"]]
    return f"{late[0]:g} is not before the end at {values['duration_s']} s" if late else None


def _stages_fit(values: Values) -> str | None:
    """Names are names of one stage each, shares leave something over, and each holds the least replicas."""
    stages, least = values[STAGES], values["autoscaler.min_replicas"]
    names = ["payment", *(one.name for one in stages)]
    if twice := [name for name in names if names.count(name) > 1]:
        return f"two stages have the name {twice[0]}"
    if small := [one for one in stages if one.partitions < least]:
        return f"{small[0].name} has {small[0].partitions} partitions, fewer than autoscaler.min_replicas = {least}"
    others = sum(1 / len(names) if one.share is None else one.share for one in stages)
    return None if others < 1 else f"their shares of W add up to {others:g} and leave nothing to payment"


def _told_upstream(values: Values) -> str | None:
    policy = values["autoscaler.policy"]
    deaf = values[STAGES] and values["chain.coordinated"] and policy != AS_ONE
    return f"{policy} does not look upstream; {AS_ONE} does, or --set coordinated=false" if deaf else None


_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("load.partitioner", _order_is_kept),
    ("load.entry", _orders_have_a_service),
    ("autoscaler.absence_grace_s", _grace_is_ours),
    ("autoscaler.policy", _known_policy),
    *((key, partial(_enough_partitions, key)) for key in ("autoscaler.max_replicas", "autoscaler.initial_replicas")),
    ("simulation.split", _simulated_split_fits),
    ("simulation.failures_s", _failures_in_time),
    (STAGES, _stages_fit),
    ("chain.coordinated", _told_upstream),
)
