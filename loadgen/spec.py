"""The load as a JSON file, written by the process that starts the generator, and the settings of the generator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from contracts.settings import Rules, Values, WebPages, contradictions, must, setting, shared_fields
from contracts.topics import PIPELINE_PARTITIONS
from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from loadgen.faults import BURST, HOT_KEY, apply_bursts, fault_after_end, faults_problem, read_faults
from loadgen.keys import Keys
from loadgen.schedule import BURST_RULES, Bursts, Schedule, Spacing, Split, build_schedule
from loadgen.shapes import IntArray
from loadgen.trace import EventTrace, Trace, join_schedules, read_trace
from loadgen.workloads import Workload, find_workload
from partitioners import Partitioner


class Topology(StrEnum):
    """Input topic of the load. It decides which stages the run has."""

    PIPELINE = "pipeline"
    """The load enters as orders at `orders.placed`."""
    PAYMENT_ONLY = "payment-only"
    """The generator writes `payments.requested` itself, as the papers did."""


class LoadSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One load. Raises ValueError (from JSON: msgspec.ValidationError) that names every contradiction."""

    topology: Topology
    workload: str
    """A name or a curve, as `find_workload` reads it."""
    trace: str = ""
    """Path of a trace whose events are sent instead of the workload's."""
    spacing: Spacing
    split: Split
    partitioner: Partitioner = Partitioner.EXPLICIT
    key_skew: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Exponent of Zipf's law for customers; 0: uniform."""
    faults: tuple[str, ...] = ()
    """Faults in the syntax of `Fault.of`."""
    seed: int = 0
    duration_s: Annotated[int, msgspec.Meta(ge=1)]
    """Seconds of the workload that are sent."""
    changed_s: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Second from which the load differs from the one that was started; 0: it does not."""
    partitions: Annotated[int, msgspec.Meta(ge=1)]
    """Partitions of `payments.requested`."""
    pipeline_partitions: Annotated[int, msgspec.Meta(ge=1)] = PIPELINE_PARTITIONS
    """Partitions of `orders.placed`."""
    latency_target_s: Annotated[float, msgspec.Meta(gt=0)]
    """Latency target W. The run is invalid if the generator's p99 lateness exceeds 5 % of it."""
    burst_period_s: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    burst_phase_s: float | Literal["random"] = 0.0
    burst_jitter_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    burst_drift_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Times of bursts, as in the class `Bursts`."""

    def __post_init__(self) -> None:
        problems = contradictions(msgspec.structs.asdict(self), RULES)
        if problems:
            raise ValueError("; ".join(f"{field}: {problem}" for field, problem in problems))

    def schedule(self) -> Schedule:
        """Return the events to send, with times and partitions. Raises InvalidSettingsError for an invalid trace."""
        workload = find_workload(self.workload)
        trace = read_trace(Path(self.trace), self.partitions, first_s=self.duration_s) if self.trace else None
        if trace and (problems := trace_problems(trace, self.split, self.partitioner, self.faults)):
            raise InvalidSettingsError([f"{trace.name}: {field}: {problem}" for field, problem in problems])
        if isinstance(trace, EventTrace):
            schedule = join_schedules(list(trace.chunks(keys=True)))
        else:
            schedule = build_schedule(
                apply_bursts(
                    counts_of(trace, workload, self.split) if trace else workload.events(self.duration_s), self.faults
                ),
                spacing=self.spacing,
                split=self.split,
                partitions=self.partitions,
                seed=self.seed,
                bursts=Bursts(**shared_fields(self, Bursts)),
            )
        hot = read_faults(self.faults, HOT_KEY)
        keys = Keys(self.seed, self.key_skew, self.partitioner, self.partitions, hot)
        return next(keys.assign_keys(iter([schedule]))) if keys.have_effect else schedule


@dataclass(frozen=True, kw_only=True)
class DriverSettings(WebPages):
    """Settings of the generator in addition to the Kafka connection, from variables TAILPACK_<FIELD>."""

    load_file: str = setting("")
    """The load, a LoadSpec as JSON."""
    out_dir: str = setting("")
    """Folder for `generator.ready` and `generator.json`. With several parts `generator-1.json`, …"""
    start_file: str = setting("")
    """File with the start of the run, epoch µs. The ready generator awaits it. Empty: start with the next whole
    second but one."""
    parts: int = setting(1, least=1, most=1_000)
    """Number of processes that share the schedule, with the same load file and start."""
    part: int = setting(1, least=1, most=1_000)
    """Number of this process, from 1."""
    connect_deadline_s: float = setting(30.0, "s", above=0)
    """Longest wait for the broker and the topic."""
    start_deadline_s: float = setting(120.0, "s", above=0)
    """Longest wait for the start file."""
    drain_deadline_s: float = setting(120.0, "s", above=0)
    """Longest wait for the last acknowledgements. A killed broker needs tens of seconds to recover."""
    linger_ms: float = setting(2.0, "ms", least=0)
    """How long the Kafka client waits for more events before it sends a batch. Adds to the latency of each event."""
    web_port: int = setting(0, least=0, most=65535)
    """Port of Locust's web page; 0: none."""
    web_host: str = setting("127.0.0.1")
    """Address of that page."""

    RULES: ClassVar[Rules] = (
        *(must(name, itemgetter(name), "missing") for name in ("load_file", "out_dir")),
        must("part", lambda of: of["part"] <= of["parts"], "must be at most parts, {parts}"),
        must("start_file", lambda of: of["parts"] == 1 or of["start_file"], "missing: parts share it"),
    )


def counts_of(trace: Trace, workload: Workload, split: Split) -> IntArray:
    """Return the events per second of a trace, by partition if the trace has partitions.

    With Split.TABLE, a trace without partitions is spread over them by the workload's table.
    """
    return workload.spread(trace.counts) if split is Split.TABLE and trace.partitions is None else trace.counts


def trace_problems(
    trace: Trace | EventTrace, split: Split, partitioner: Partitioner, faults: Sequence[str]
) -> list[tuple[str, str]]:
    """Return (field, message) for settings that contradict the trace.

    A table has fixed partitions and requires `explicit`. For single events, other partitioners may choose by key.
    """
    problems = [("faults", fault_after_end(faults, trace.duration_s))]
    if isinstance(trace, Trace):
        table = split is Split.TABLE or trace.partitions is not None
        problems.append(("partitioner", _ignores_table(partitioner, "the trace") if table else None))
    elif read_faults(faults, BURST):
        problems.append(("faults", "burst multiplies events per second; a trace of single events has fixed times"))
    return [(field, problem) for field, problem in problems if problem]


def read_load(settings: DriverSettings) -> LoadSpec:
    """Read the load file and check the folder for the result. Raises InvalidSettingsError, which names the file."""
    if not Path(settings.out_dir).is_dir():
        raise InvalidSettingsError([f"TAILPACK_OUT_DIR: {settings.out_dir} is not a folder"])
    path = Path(settings.load_file)
    try:
        return msgspec.json.decode(path.read_bytes(), type=LoadSpec)
    except OSError as error:
        raise InvalidSettingsError([f"{path}: cannot be read ({error.strerror})"]) from error
    except DECODE_ERRORS as error:
        raise InvalidSettingsError([f"{path}: {error}"]) from error


def _known_workload(values: Values) -> str | None:
    try:
        find_workload(values["workload"])
    except KeyError as error:
        return str(error.args[0])
    return None


def _unless_traced(rule: Callable[[Values, Workload], str | None], values: Values) -> str | None:
    return None if values["trace"] else rule(values, find_workload(values["workload"]))


def _long_enough(values: Values, workload: Workload) -> str | None:
    fits = workload.lasts(values["duration_s"])
    return None if fits else f"{values['duration_s']} is too long: {workload.name} ends at {workload.duration_s} s"


def _split_fits_table(values: Values, workload: Workload) -> str | None:
    if (workload.partitions is None) is (values["split"] is not Split.TABLE):
        return None
    if workload.partitions is None:
        return f"'table' needs a workload with a partition table; {workload.name} has none"
    return f"'{values['split']}' contradicts the partition table of {workload.name}; use 'table'"


def _partitions_fit_table(values: Values, workload: Workload) -> str | None:
    fits = workload.partitions in (None, values["partitions"])
    made_for = f"{workload.name}, which is made for {workload.partitions}"
    return None if fits else f"{values['partitions']} contradicts {made_for}"


def _partitioner_keeps_table(values: Values, workload: Workload) -> str | None:
    return _ignores_table(values["partitioner"], workload.name) if values["split"] is Split.TABLE else None


def _ignores_table(partitioner: Partitioner, owner: str) -> str | None:
    if partitioner is Partitioner.EXPLICIT:
        return None
    return f"'{partitioner}' would ignore the partition table of {owner}; use 'explicit'"


RULES: Final[Rules] = (
    ("workload", _known_workload),
    ("duration_s", partial(_unless_traced, _long_enough)),
    ("split", partial(_unless_traced, _split_fits_table)),
    ("partitions", partial(_unless_traced, _partitions_fit_table)),
    ("partitioner", partial(_unless_traced, _partitioner_keeps_table)),
    ("faults", faults_problem),
    *BURST_RULES,
)
"""Rules against contradictions: pairs of the field of LoadSpec that the message names, and the rule."""
