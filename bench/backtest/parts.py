"""Divides a trace into parts, each of which is one simulated run, and computes figures of their blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.policies.registry import fixed_count
from bench.jobs import Job, Row
from loadgen.schedule import SECOND_US
from loadgen.shapes import IntArray
from loadgen.trace import PARTITIONS, EventTrace, Trace

MAX_SIMULATED_S: Final = 24 * 240
"""A longer trace is sampled: its parts are spread evenly over it and have this duration together."""
PART_S: Final = 240
"""Duration of a part of a sampled trace, seconds."""
WARM_UP_S: Final = 90
"""Time before a part in which the policy learns the load, seconds. It is simulated, but not counted."""
BOUND: Final = "clairvoyant"
"""Policy of a job that computes the lower bound of all policies."""
BLOCKS: Final = 24
"""Number of blocks into which a trace is divided that is simulated as a whole. Intervals are over blocks."""


@dataclass(frozen=True)
class Part:
    """A part of a trace. It begins with `warm_up_s` seconds that are not counted."""

    trace: Path | None
    """File of its events; None: it has no events."""
    begin_s: int
    """First counted second of the trace."""
    end_s: int
    warm_up_s: int
    blocks: int

    @property
    def how(self) -> str:
        """The warm-up, the number of blocks and the length with the warm-up, in the form of `Job.how`."""
        return f"backtest {self.warm_up_s} {self.blocks} {self.warm_up_s + self.end_s - self.begin_s}"


def parts_of(trace: Trace | EventTrace, path: Path, folder: Path) -> list[Part]:
    """Return the parts of a trace. Those of a sampled trace are written to `folder`. path: the file of the trace."""
    if trace.duration_s <= MAX_SIMULATED_S:
        return [Part(path, 0, trace.duration_s, 0, max(1, min(BLOCKS, trace.duration_s // 10)))]
    count = MAX_SIMULATED_S // PART_S
    every_s = trace.duration_s / count
    begins = [int(number * every_s + (every_s - PART_S) / 2) for number in range(count)]
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.parquet"):  # of an earlier trace
        stale.unlink()
    files = {
        Part(None, begin_s, begin_s + PART_S, min(begin_s, WARM_UP_S), 1): folder / f"{begin_s}.parquet"
        for begin_s in begins
    }
    if isinstance(trace, Trace):
        for part, file in files.items():
            if (counts := trace.counts[part.begin_s - part.warm_up_s : part.end_s]).any():
                Trace(trace.name, counts).save(file)
    else:
        _write_events(trace, files)
    return [replace(part, trace=file if file.exists() else None) for part, file in files.items()]


def _write_events(trace: EventTrace, files: Mapping[Part, Path]) -> None:
    """Write the events of each part in one pass over the trace."""
    import pyarrow  # noqa: PLC0415  a tenth of a second
    from pyarrow import parquet  # noqa: PLC0415

    schema = pyarrow.schema(
        [("at_s", pyarrow.float64()), ("partition", pyarrow.int32())],
        metadata={PARTITIONS: str(trace.partitions)},
    )
    rest, held = list(files), list[Any]()

    def write(part: Part) -> None:
        if held:
            parquet.write_table(pyarrow.concat_tables(held), files[part])
            held.clear()

    for chunk in trace.chunks():
        while rest and len(chunk):
            start_us, end_us = ((rest[0].begin_s - rest[0].warm_up_s) * SECOND_US, rest[0].end_s * SECOND_US)
            low, high = chunk.offset_us.searchsorted([start_us, end_us])
            if high > low:
                columns = [(chunk.offset_us[low:high] - start_us) / 1e6, chunk.partition[low:high]]
                held.append(pyarrow.table(columns, schema=schema))
            if high == len(chunk):  # the part may go on in the next chunk
                break
            write(rest.pop(0))
    if rest:
        write(rest[0])


def run_part(job: Job) -> Row:
    """Simulate a part. Return for each of its blocks: events, late events, replica-seconds.

    A part without events is not simulated: it has the minimum number of replicas all the time. For the policy BOUND,
    return a proven lower bound of all policies in place of the blocks: replica_s, and its method.
    Raises InvalidSettingsError.
    """
    from bench.simulation.optimum import lower_bound  # noqa: PLC0415  compiled code only where something is simulated
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent_events import build_events, replica_minutes  # noqa: PLC0415

    warm_up_s, blocks, length_s = map(int, job.how.split()[1:])
    edges, changes = [*map(int, np.linspace(warm_up_s, length_s, blocks + 1))], dict(job.changes)
    if not changes["load.trace"]:
        least = fixed_count(job.policy) or replica_limit(changes, "min_replicas", 1)
        none = [0] * blocks
        return {"events": none, "late": none, "replica_s": [least * (end - begin) for begin, end in pairwise(edges)]}
    partitions = changes.get("payment.partitions", 0)
    idle = max(0, fixed_count(job.policy) - partitions) if partitions else 0  # they cost, but serve nothing
    if idle:
        job = msgspec.structs.replace(job, policy=f"static-{partitions}")
    scenario = job.read_scenario()
    sent = build_events(scenario)
    rest_s = length_s - sent.duration_s  # a file of single events ends with the last one
    sent = replace(sent, counts=np.pad(sent.counts, [(0, rest_s), (0, 0)][: sent.counts.ndim]))
    if job.policy == BOUND:
        replica_s, method = lower_bound(scenario, sent, warm_up_s)
        return {"replica_s": [replica_s], "method": method}
    run, result = run_scenario(scenario, sent, keep_events=False)
    ends = np.concatenate([[0], np.cumsum(sent.table().sum(axis=1))])
    late = run.latency_us > round(scenario.target.latency_target_s * 1e6)
    found: dict[str, list[float]] = {"events": [], "late": [], "replica_s": []}
    for begin_s, end_s in pairwise(edges):
        first, last = int(ends[begin_s]), int(ends[end_s])
        found["events"].append(last - first)
        found["late"].append(int(np.count_nonzero(late[first:last])))
        serving_s = 60 * replica_minutes(run.requested, begin_s * SECOND_US, end_s - begin_s)
        found["replica_s"].append(serving_s + idle * (end_s - begin_s))
    return {**found, "lost": result.lost, "in_sla": result.in_sla}


def replica_limit(changes: Mapping[str, Any], name: str, default: int) -> int:
    """Return a setting of the section autoscaler. A key without the section overrides one with it."""
    return int(changes.get(name, changes.get(f"autoscaler.{name}", default)))


def block_edges(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each block in seconds of the trace, in the order of the rows."""
    for part in parts:
        edges = [*map(int, np.linspace(part.begin_s, part.end_s, part.blocks + 1))]
        yield from pairwise(edges)


def per_partition(trace: Trace | EventTrace, partitions: int) -> IntArray:
    """Return the events of each second and partition; a trace of totals is divided evenly."""
    if trace.counts.ndim == 2:
        return trace.counts
    totals = np.concatenate([[0], np.cumsum(trace.counts)])[:, None]
    return np.diff((totals - np.arange(partitions) + partitions - 1) // partitions, axis=0)
