"""Targets: files of settings, scenarios, traces, runs and state, and variables of the environment."""

from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from live_worlds import started
from pyarrow import parquet
from small_report import small_run
from stored_runs import event_rows

from autoscaler.keda.scaler import KedaSettings
from autoscaler.live.configuration import read as read_config
from autoscaler.live.launchers.processes import read_pid_files
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.registry import POLICIES, make_policy
from bench import BenchError, benchmark, jobs, matrix, replay
from bench.scenario import load_scenario
from contracts.connection import Connection, read_settings
from contracts.validation import DECODE_ERRORS, InvalidSettingsError, from_environment, variable
from fuzz_suite.control import JOURNAL
from fuzz_suite.inputs import VALUES, Inputs
from loadgen.result import RESULT_FILE as GENERATOR_FILE
from loadgen.result import GeneratorResult
from loadgen.spec import DriverSettings, read_load
from loadgen.trace import PARTITIONS, EventTrace, read_trace
from report import ReportError, stored
from report.comparison import compare
from report.figures import measure, report_stored
from report.result import RESULT_FILE
from report.run_info import RUN_FILE, load_run, run_of_files
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings
from tailpack.cli.options import parse_changes
from tailpack.errors import TailpackError
from tailpack.local.broker import STATE_FILE, Broker
from tailpack.reporting import load_result

CONFIG: Final = {
    "bootstrap_servers": '"127.0.0.1:9"', "state_dir": '"x"', "topic": '"names"', "policy": '"tail-aware"',
    "latency_target_s": "0.5", "max_replicas": "4", "http_port": "8600", "policy_options.keep_s": "30.0",
    "service_time_s": "0.01", "replica_command": '"python x"', "launcher": '"processes"',
}  # fmt: skip
PROCESSES: Final = (AutoscalerSettings, ReplicaSettings, OrderSettings, KedaSettings, DriverSettings)
PROPERTIES: Final = b"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password.file=secret\n"
TRACES: Final = (
    b"second,0,1\n0,5,6\n1,7,8\n", b"at_s,partition,key\n0.5,0,a\n0.7,1,b\n", b"at_s,key\n0,a\n1,b\n",
    b"second,events\n0,5\n1,6\n",
)  # fmt: skip
CHANGED: Final = ("seed", "load.workload", "payment.partitions", "autoscaler.policy", "policy.keep_s", "x")
NANOSECONDS: Final = pa.timestamp("ns")
ODD_COLUMNS: Final = (
    pa.array([0.5, float("nan"), 1e308]), pa.array([1, 2**63 - 1, -1]), pa.array(["1", "x", ""]), pa.nulls(3),
    pa.array([True, None, False]), pa.array([b"\xff", b"", b"a"]), pa.array([[1], [], None]),
    pa.array([{"a": 1}, None, {"a": 2}]), pa.array(["a", "b", "a"]).dictionary_encode(),
    *(pa.array([1, 2, 3], kind) for kind in (NANOSECONDS, pa.time64("ns"), pa.decimal128(9), pa.uint64())),
    pa.array([1, 2, 3], NANOSECONDS).dictionary_encode(), pa.array([[1], [2], []], pa.list_(NANOSECONDS)),
)  # fmt: skip
PID: Final = {"v": 1, "pid": 1, "process": "x/1", "incarnation": "i"}
LOAD_FILE: Final = "load.json"
LOAD: Final = {
    "topology": "payment-only", "workload": "w1", "spacing": "burst", "split": "random", "duration_s": 600,
    "partitions": 5, "latency_target_s": 0.5, "faults": ["burst 3-5 10"], "seed": 1, "partitioner": "explicit",
}  # fmt: skip
GENERATED: Final = msgspec.to_builtins(
    GeneratorResult(scheduled=10, produced=10, acknowledged=10, failed=0, invalid_orders=0, interrupted=False,
                    started_us=1, ended_us=2, lateness_p50_us=1, lateness_p99_us=2, lateness_max_us=3,
                    lateness_limit_us=25_000, valid=True, cpu_s=0.5)
)  # fmt: skip
ROW: Final = {"options": {"a": 1}, "case": "c", "number": 1, "row": {"problem": ""}}
NODE: Final = {"port": 9092, "node": 1, "quorum": {"1": 9093}, "pid": 1, "identity": "x"}


class Files(Inputs):
    """Files of a person, of another program, or of an earlier process."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self._scenarios = [path.read_text() for path in sorted(Path("bench/scenarios").rglob("*.toml"))]
        self._matrix = '[[case]]\nscenario = "w1"\nset = {split = "even"}\ncounts = 2\n'
        self._trace = pa.table({"at_s": [0.5, 0.7, 1.0], "partition": [0, 1, 2], "key": [1, 2, 3]})
        self._events = pa.Table.from_pylist(event_rows()[:3])

    def scenario(self) -> None:
        file = self._file("scenario.toml", self._toml(self._chance.choice(self._scenarios)))
        text = f"{self._chance.choice(CHANGED)}={self._chance.choice(VALUES)}"
        with suppress(InvalidSettingsError, TailpackError):
            load_scenario(str(file), parse_changes([text] if self._chance.random() < 0.3 else []))

    def matrix(self) -> None:
        file = self._file("matrix.toml", self._toml(f'title = "t"\ncontender = ["linear"]\n{self._matrix}'))
        with suppress(InvalidSettingsError):
            for case in matrix.read_matrix(str(file)).cases_at_points()[:3]:
                case.job(matrix.Contender(policy="linear")).read_scenario()

    def settings(self) -> None:
        lines = [f"{key} = {value}" for key, value in CONFIG.items() if self._chance.random() < 0.9]
        file = self._file("own.toml", self._toml("\n".join(lines)))
        with suppress(InvalidSettingsError):
            read_config(file, {})
        kind = self._chance.choice(PROCESSES)
        names = self._chance.sample([one.name for one in fields(kind)], 3)
        with suppress(InvalidSettingsError):
            read_settings({variable(name): self._text() for name in (*names, "bootstrap_servers")}, kind)

    def client_properties(self) -> None:
        self._file("secret", self._chance.choice((b"", b"\xff", b"hush\n", "\ufeff".encode())))
        text = PROPERTIES.replace(b"secret", str(self._folder / "secret").encode())
        pieces = (*PROPERTIES.splitlines(), b"\xff", b"\0", b"=", b"\n", b"ssl.key.location=x\n")
        path = self._file("client.properties", self._spliced(text, pieces))
        with suppress(InvalidSettingsError):
            Connection(bootstrap_servers="127.0.0.1:1", client_properties=str(path)).aiokafka()

    def policy_options(self) -> None:
        name = self._chance.choice([*POLICIES])
        known = [one.name for one in fields(POLICIES[name].options)]
        options = msgspec.json.encode({self._chance.choice([*known, "x"]): 1 for _ in range(3)})
        text = self._record(msgspec.json.decode(options)).decode("utf-8", "replace")
        with suppress(ValueError):
            given = from_environment({"TAILPACK_POLICY_OPTIONS": text, "TAILPACK_STATE_DIR": "x"}, AutoscalerSettings)
            policy = make_policy(name, options=given.options())
            if name != "clairvoyant":
                policy.decide(started(2).group.observe())

    def trace_csv(self) -> None:
        self._read_trace(self._file("trace.csv", self._spliced(self._chance.choice(TRACES))))

    def trace_parquet(self) -> None:
        self._read_trace(self._parquet("trace.parquet", self._trace))

    def report_input(self) -> None:
        """Events of another application, and a journal."""
        entries = [self._record(*JOURNAL).decode("utf-8", "replace") for _ in range(3)]
        events = self._parquet("own.parquet", self._events)
        journal = self._parquet("journal.parquet", pa.table({"position": [1, 2, 3], "entry": entries}), 0.2)
        with suppress(ReportError):
            known = stored.copy_events(str(events), self._folder / "copy.parquet")
            rows = stored.load_events(self._folder / "copy.parquet", known)
            run = run_of_files("own.parquet", 0.5, 0.99, "")
            with suppress(ReportError):
                measure(msgspec.structs.replace(run, started_us=0), rows, stored.read_journal(journal), now_us=10**17)

    def run_folder(self) -> None:
        """The files of a run, and of a matrix or benchmark that goes on."""
        folder = self._folder / f"run-{self._chance.getrandbits(60)}"
        small_run(folder)
        ours = {RUN_FILE, RESULT_FILE}
        for name in self._chance.sample(sorted(ours), self._chance.choice((1, 2))):
            whole = msgspec.json.decode((folder / name).read_bytes())
            (folder / name).write_bytes(self._record(whole))
        for read, errors in (
            (load_run, ReportError), (load_result, TailpackError), (replay.read_run, InvalidSettingsError),
            (replay.simulate_other_policies, BenchError), (report_stored, ReportError),
            (lambda at: compare([at, at]), InvalidSettingsError),
        ):  # fmt: skip
            with suppress(errors):
                read(folder)
        rows = self._file(f"{folder.name}/results.jsonl", self._record([["k"], {"a": 1}]) + b"\n" + self._record(ROW))
        jobs.read_rows(folder)
        with suppress(BenchError):
            benchmark._stored_rows(rows)

    def load_files(self) -> None:
        """The files that a load generator reads, and leaves."""
        folder = self._folder
        self._file(LOAD_FILE, self._record(LOAD))
        with suppress(InvalidSettingsError):
            read_load(DriverSettings(load_file=str(folder / LOAD_FILE), out_dir=str(folder), start_file="x"))
        self._file(GENERATOR_FILE, self._record(GENERATED))
        with suppress(OSError, *DECODE_ERRORS):
            GeneratorResult.load(folder)

    def state_files(self) -> None:
        (self._folder / "replicas").mkdir(exist_ok=True)
        self._file("replicas/payment-0.json", self._record(PID))
        list(read_pid_files(self._folder))
        self._file(STATE_FILE, self._record(NODE))
        with suppress(TailpackError):
            Broker(self._folder).address()

    def _parquet(self, name: str, table: pa.Table, odd: float = 0.7) -> Path:
        """Write the table with some columns of other types, missing or of another name; else damage its file."""
        if is_odd := self._chance.random() < odd:
            for _ in range(self._chance.choice((1, 1, 2))):
                at = self._chance.randrange(table.num_columns)
                own = self._chance.choice((table.column_names[at], table.column_names[at], "x", "key"))
                table = table.set_column(at, own, self._chance.choice(ODD_COLUMNS))
        path, number = self._folder / name, self._chance.choice((b"9", b"-1", b"x", b"", b"9" * 5000, b"1" * 9))
        table = table.replace_schema_metadata({PARTITIONS: number} if self._chance.random() < 0.2 else {})
        parquet.write_table(table, path)
        return path if is_odd else self._file(name, self._damaged(path.read_bytes()))

    def _read_trace(self, path: Path) -> None:
        with suppress(InvalidSettingsError):
            trace = read_trace(path, self._chance.choice((None, 2, 9)))
            if isinstance(trace, EventTrace):
                sum(len(chunk) for chunk in trace.chunks(keys=True))
