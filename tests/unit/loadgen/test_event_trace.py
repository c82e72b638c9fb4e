"""A trace of single events is read unchanged, or its first error is named by file and row."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bench.scenario import load_scenario
from bench.simulation.sent_events import build_events
from contracts.validation import InvalidSettingsError
from loadgen import trace_file
from loadgen.schedule import NO_KEY
from loadgen.trace import EventTrace, join_schedules, read_trace


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "mine.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def events_of(trace: EventTrace) -> list[tuple[int, int]]:
    whole = join_schedules(list(trace.chunks()))
    return list(zip(whole.offset_us.tolist(), whole.partition.tolist(), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "at_s,partition\n0.1,1\n0.5,0\n2.25,1\n",
        "\ufeffAt_s , partition\r\n 0.1 , 1\r\n0.5,0.0\r\n2.25,1\r\n\r\n\r\n",
        'key,partition,at_s\n"a, b",1,0.1\n,0,5e-1\nc,1,"2.25"\n',
    ],
)
def test_files_of_other_programs_are_read(tmp_path: Path, text: str) -> None:
    trace = read_trace(written(tmp_path, text), 3)
    assert isinstance(trace, EventTrace)
    assert events_of(trace) == [(100_000, 1), (500_000, 0), (2_250_000, 1)]
    assert (trace.duration_s, trace.partitions) == (3, 3)
    assert trace.counts.tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("at_s,partition\n-0.1,1\n", "line 2: at_s = -0.1: is negative"),
        ("at_s,partition\n0,1\nsoon,1\n", "line 3: at_s = 'soon': is not a number"),
        ("at_s,partition\n0.1,1\n\n0.2,1\n", "line 3: at_s is empty"),
        ("at_s,partition\n0.5,1\n0.1,1\n", "line 3: at_s = 0.1: is before the event above; sort the events by at_s"),
        ("at_s,partition\n0.1,1\n0.2\n", "line 3: Expected 2 columns, got 1: 0.2"),
        ('at_s,partition,key\n0.1,1,"a\nb"\n0.2,x,c\n', "line 4: partition = 'x': is not a number"),
        ('at_s,partition,key\n0.1,1,"a\n\nb"\n0.2,1\n', "line 5: Expected 3 columns, got 2: 0.2,1"),
        ("at_s,partition\n", "it has no event"),
        ("at_s,abschnitt\n0,1\n", "line 1: 'at_s,abschnitt' is not the header; must be second,events or"),
    ],
)
def test_the_first_error_is_named_by_file_and_row(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(InvalidSettingsError) as error:
        read_trace(written(tmp_path, text), 3)
    assert str(error.value).startswith(f"mine.csv: {problem}")


def test_chunks_have_every_event_once_and_keep_events_of_the_same_time_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "BATCH_ROWS", 7)
    random = np.random.default_rng(5)
    at_s, partition = np.sort(random.integers(0, 20, 200)) / 4, random.integers(0, 6, 200)
    parquet.write_table(pa.table({"at_s": at_s, "partition": partition}), tmp_path / "mine.parquet")
    trace = read_trace(tmp_path / "mine.parquet", 6)
    assert isinstance(trace, EventTrace)
    assert events_of(trace) == list(zip((at_s * 1e6).astype(int).tolist(), partition.tolist(), strict=True))
    edges = [(int(chunk.offset_us[0]), int(chunk.offset_us[-1])) for chunk in trace.chunks()]
    assert len(edges) > 3
    assert all(end < begin for (_, end), (begin, _) in pairwise(edges))


def test_a_trace_with_more_partitions_than_the_scenario_sets_their_number(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "at_s,partition\n0.1,0\n0.2,11\n"), 5)
    assert load_scenario("w1").with_trace(trace).payment.partitions == trace.partitions == 12


def test_events_keep_their_own_times_live_and_simulated(tmp_path: Path) -> None:
    path = written(tmp_path, "at_s,partition,key\n0.1,1,a\n0.5,4,b\n2.25,1,a\n")
    scenario = load_scenario("w1", {"load.trace": str(path), "load.spacing": "smooth"})
    trace = read_trace(path, scenario.payment.partitions)
    sent = build_events(scenario, trace)
    assert (sent.events, sent.duration_s, sent.partitions) == (3, 3, 5)
    live = scenario.with_trace(trace).for_live().load_spec().schedule()
    (chunk,) = [chunk for chunk in sent.workload().chunks if len(chunk) == 2]
    assert chunk.intended_us.tolist() == live.offset_us[:2].tolist() == [100_000, 500_000]
    assert live.partition.tolist() == [1, 4, 1]
    assert live.key is not None
    assert live.key[0] == live.key[2] != live.key[1]


@pytest.mark.parametrize("text", ["second,events\n0,10\n1,3\n", "second,p0,p1\n0,4,1\n1,0,3\n"])
def test_events_per_second_are_sent_live_as_they_are_simulated(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    changes = {"load.trace": str(path), "spacing": "poisson", "split": "random", "max_replicas": 2}
    scenario = load_scenario("w1", changes).with_trace(read_trace(path))
    live = scenario.for_live().load_spec().schedule()
    (simulated,) = build_events(scenario).workload().chunks
    assert np.array_equal(simulated.intended_us, live.offset_us)
    assert np.array_equal(simulated.partition, live.partition)
    assert len(live) == read_trace(path).counts.sum()


@pytest.mark.parametrize("columns", ["at_s,partition,key\n{}", "at_s,key\n{}"])
def test_a_partitioner_moves_events_by_their_keys(tmp_path: Path, columns: str) -> None:
    has_partition = "partition" in columns
    rows = "".join(f"{n / 100},{f'{n % 5},' if has_partition else ''}{'abcdefgh'[n % 8]}\n" for n in range(400))
    path = written(tmp_path, columns.format(rows))
    scenario = load_scenario("w1-skew9", {"load.trace": str(path), "partitioner": "kg", "max_replicas": 5})
    trace = read_trace(path, 9)
    live = scenario.with_trace(trace).for_live().load_spec().schedule()
    simulated = join_schedules(list(build_events(scenario).chunks()))
    assert live.partition.tolist() == simulated.partition.tolist()
    owners = {}
    for key, partition in zip(live.key.tolist(), live.partition.tolist(), strict=True):
        owners.setdefault(key, set()).add(partition)
    assert len(owners) == 8
    assert all(len(partitions) == 1 for partitions in owners.values()), "kg keeps a key together"


def test_keys_of_any_type_keep_their_events_together(tmp_path: Path) -> None:
    numbers = [None if n == 3 else n % 11 for n in range(600)]
    nested = pa.array([None if n is None else {"id": n, "shop": "a"} for n in numbers])
    for keys in (nested, pa.array([None if n is None else [n] for n in numbers]), pa.array(numbers, pa.float64())):
        parquet.write_table(pa.table({"at_s": np.arange(600) / 20, "key": keys}), tmp_path / "keys.parquet")
        whole = join_schedules(list(read_trace(tmp_path / "keys.parquet", 3).chunks(keys=True)))
        assert len({*whole.key.tolist()} - {NO_KEY}) == 11
        assert (whole.key == NO_KEY).sum() == 1
        assert all(len({*whole.partition[whole.key == key].tolist()}) == 1 for key in {*whole.key.tolist()} - {NO_KEY})


def test_quoted_keys_with_line_breaks_are_read_in_files_of_any_length(tmp_path: Path) -> None:
    row = '{},{},"{{\n  ""id"": ""{}"",\n  ""pad"": ""{}""\n}}"\n'
    rows = "".join(row.format(n / 1000, n % 3, n % 11, "x" * 200) for n in range(20_000))
    assert len(rows) > trace_file.BLOCK_BYTES
    trace = read_trace(written(tmp_path, "at_s,partition,key\n" + rows), 3)
    assert trace.counts.sum() == 20_000


def test_without_a_partition_column_keys_choose_and_keyless_events_are_spread(tmp_path: Path) -> None:
    rows = "".join(f"{n / 1000},{f'user-{n % 100}' if n % 2 else ''}\n" for n in range(4000))
    trace = read_trace(written(tmp_path, "at_s,key\n" + rows), 4)
    whole = join_schedules(list(trace.chunks(keys=True)))
    assert np.array_equal(trace.counts.sum(axis=0), np.bincount(whole.partition, minlength=4))
    keyless = whole.key == NO_KEY
    assert np.bincount(whole.partition[keyless]).min() > 400, "2,000 over all four"
    pairs = set(zip(whole.key[~keyless].tolist(), whole.partition[~keyless].tolist(), strict=True))
    assert len(pairs) == 50
    assert len({partition for _, partition in pairs}) == 4
    with pytest.raises(InvalidSettingsError, match="line 2: there is no column partition: set the number"):
        read_trace(tmp_path / "mine.csv")
