"""The command line as a user meets it: help of every command, and one line with exit status 2 for each error."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import typer
from example_report import example
from generators.commands import leaves

from autoscaler.policies.registry import POLICIES
from bench.scenario import scenario_names
from report.result import Effects, Result
from report.run_info import RUN_FILE
from tailpack import reporting
from tailpack.cli import main as cli
from tailpack.local.jars import java


@dataclass(frozen=True)
class Ended:
    """How `tailpack …` ended and what it printed."""

    status: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def tailpack(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Command]:
    """The command line as the installed command runs it, in an empty folder, with no broker running."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # main() replaces it, and the signal handlers
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["tailpack", *words])
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        output = capsys.readouterr()
        return Ended(status, output.out, output.err)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("path", dict(leaves(typer.main.get_command(cli.app))))
def test_every_command_explains_itself(tailpack: Command, path: str) -> None:
    ended = tailpack(*path.split(), "--help")
    assert (ended.status, ended.err) == (0, "")
    usage, _, explanation = ended.out.strip().partition("\n")
    assert f"tailpack {path} [OPTIONS]" in usage
    assert re.search(r"^ [A-Z].{15,}", explanation, re.MULTILINE), "a sentence that describes it"
    assert re.search(rf"Example: tailpack {path.removesuffix(' run')}\b", ended.out)


@pytest.mark.parametrize(("old", "new"), cli.RENAMED.items())
def test_a_former_name_still_works_and_prints_the_new_one(tailpack: Command, old: str, new: str) -> None:
    ended = tailpack(*old.split(), "--help")
    assert (ended.status, ended.err) == (0, f"tailpack: `{old}` is now `tailpack {new}`\n")
    assert f"tailpack {new.removesuffix(' --from')} [OPTIONS]" in ended.out


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("dev", "bench", "--help"), ("simulat",)])
def test_the_module_of_an_unused_command_is_not_imported(words: tuple[str, ...]) -> None:
    script = f"import sys\nfrom tailpack.cli.main import main\nsys.argv = ['tailpack', *{words}]\n"
    script += "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    imported = set(ended.stderr.split())
    assert {name for name in imported if name.startswith("tailpack.cli.")} == {"tailpack.cli.main"}
    assert not imported & {"confluent_kafka", "numpy", "numba", "pyarrow", "services", "report", "tailpack.run"}


def test_scenarios_and_policies_are_listed_for_people_and_for_programs(tailpack: Command) -> None:
    scenarios, policies = (json.loads(tailpack("list", what, "--json").out) for what in ("scenarios", "policies"))
    assert [one["name"] for one in scenarios] == scenario_names()
    assert scenarios[0]["autoscaler"]["policy"] in POLICIES
    assert policies == {name: factory.description for name, factory in POLICIES.items()}
    for what, names in (("scenarios", scenario_names()), ("policies", POLICIES)):
        table = tailpack("list", what).out
        assert all(re.search(rf"^ *{name} ", table, re.MULTILINE) for name in names)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("run", "dmo"), r"scenario 'dmo' is unknown; did you mean demo\?"),
        (
            ("run", "w1", "--set", "payment.rebalance_protocol=lazy", "--set", "startup_s=soon"),
            r"--set payment\.rebalance_protocol = 'lazy': .*, eager, .*\n"
            r"tailpack: --set simulation\.startup_s = 'soon': .*",
        ),
        (("run",), r"Missing argument 'SCENARIO': for example w1, taxi; `tailpack list scenarios` lists all"),
        (
            ("run", "w1", "--duration", "soon"),
            r"Invalid value for '--duration': 'soon': must be whole seconds, .*90s.*",
        ),
        (("run", "W1", "--policy", "fixed-5"), r"--policy 'fixed-5' is unknown; did you mean static-5\?"),
        (("simulate", "w1", "--polcy", "linear"), r"No such option: --polcy .*--policy.*"),
        (("simulte", "w1"), r"No such command 'simulte'\. Did you mean 'simulate'\?"),
        (("demo", "--out", "/dev/null/x"), r"/dev/null: Not a directory; name a folder"),
        (("report", "/"), r"/ .*run\.json"),
        (("report", "out/nothing"), r"out/nothing: .*tailpack demo"),
        (("view", "/"), r"/run\.json: No such file or directory; pass a run folder, .*"),
        (("init", "policy", "mine.txt"), r"mine\.txt: the name of a policy must end in \.py"),
        (("explain", "--follow", "--json"), r"--follow .*leave out --run, --json.*"),
        (("explain", "--why-not", "3", "--json"), r"--json .*leave out --why-not"),
        (("report",), r"out .*RUN_DIR.*tailpack demo"),
        (("kafka", "groups"), r".*--bootstrap-servers.*tailpack kafka start"),
        (
            ("dev", "load", "demo", "--namespace", "demo"),
            r"Missing option '--bootstrap-servers' .*: 'TAILPACK_BOOTSTRAP_SERVERS'.*",
        ),
        (("simulate", "--from", "nowhere"), r".*nowhere: run\.json .*"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_each_error_that_the_user_can_fix_is_one_line_with_status_2(
    tailpack: Command, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    ended = tailpack(*words)
    assert ended.status == 2
    assert ended.out == ""
    assert re.fullmatch(f"tailpack: {line}\n", ended.err)
    assert list(tmp_path.iterdir()) == [], "nothing was started"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("show", "scenario", "W1"), r'(?m)^name = "w1"'),
        (("show", "policy", "Linear"), r"f_up +0\.9"),
        (("show", "setting", "startup"), r"simulation\.startup_s"),
        (("record", "--topic", "x", "--out", "/dev/null"), r"/dev/null exists"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_names_ignore_case_and_show_setting_finds_parts_of_names(
    tailpack: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], found: str
) -> None:
    monkeypatch.setenv("TAILPACK_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    ended = tailpack(*words)
    assert re.search(found, ended.out + ended.err)


def test_a_taken_port_is_reported_before_anything_starts(tailpack: Command, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = tailpack("demo", "--web-ui", port)
    assert (ended.status, ended.out) == (2, "")
    assert f"port {port} " in ended.err
    assert "--web-ui" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_without_java_nothing_is_started(tailpack: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    java.cache_clear()
    ended = tailpack("demo")
    assert (ended.status, ended.out) == (2, "")
    assert "JAVA_HOME=/nowhere " in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Effects], str]:
    """Return a function that makes a run folder whose report, without Spark, has these effects."""

    def make(effects: Effects) -> str:
        folder = tmp_path / "a-run"
        folder.mkdir()
        (folder / RUN_FILE).write_text("{}")
        result = msgspec.structs.replace(example(), effects=effects)
        monkeypatch.setattr(reporting, "report_run", lambda run, *_: result.save(run))
        return str(folder)

    return make


WHOLE = Effects(orders=10, exactly_once=10, missing=0, doubled=0)
DAMAGED = Effects(orders=10, exactly_once=9, missing=1, doubled=0)
EMPTY = Effects(orders=0, exactly_once=0, missing=0, doubled=0)


@pytest.mark.parametrize(("effects", "status"), [(WHOLE, 0), (DAMAGED, 1), (EMPTY, 1)])
def test_a_strict_report_succeeds_only_if_every_order_had_each_effect_once(
    tailpack: Command, run_folder: Callable[[Effects], str], effects: Effects, status: int
) -> None:
    folder = run_folder(effects)
    assert tailpack("report", folder).status == 0
    assert tailpack("report", folder, "--strict").status == status


def test_json_alone_is_on_standard_output(tailpack: Command, run_folder: Callable[[Effects], str]) -> None:
    ended = tailpack("report", run_folder(WHOLE), "--json")
    assert msgspec.json.decode(ended.out, type=Result).effects == WHOLE
    assert "report.html" in ended.err


@pytest.mark.parametrize("how", [KeyboardInterrupt, typer.Exit(130), typer.Abort], ids=["pressed", "kept", "aborted"])
def test_ctrl_c_is_one_line_and_status_130(
    tailpack: Command, monkeypatch: pytest.MonkeyPatch, how: BaseException
) -> None:
    def interrupted() -> None:
        raise how

    monkeypatch.setattr("bench.scenario.scenario_names", interrupted)
    assert tailpack("list", "scenarios") == Ended(130, "", "tailpack: stopped\n")


@pytest.mark.parametrize("how", ["finalised", "weak reference"])
def test_ctrl_c_in_a_finaliser_or_a_weak_reference_still_ends_the_command(
    tailpack: Command, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def press(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    class Pressed:
        if how == "finalised":
            __del__ = press

    def slowly() -> None:
        pressed = Pressed()
        reference = None if how == "finalised" else weakref.ref(pressed, press)
        del pressed
        threading.Event().wait(30)
        del reference

    monkeypatch.setattr("bench.scenario.scenario_names", slowly)
    assert tailpack("list", "scenarios") == Ended(130, "", "tailpack: stopped\n")
