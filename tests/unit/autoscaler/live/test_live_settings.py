import os
import subprocess
import sys
from pathlib import Path

import pytest

from autoscaler.live.composition import launcher_from, policy_from
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.start import StateDirTakenError, Told, only_one, read
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment
from services.consumer import Options
from services.consumer.environment import ConsumerSettings

GOOD = {"TAILPACK_POLICY": "algorithm-2", "TAILPACK_PAYMENT_PARTITIONS": "5", "TAILPACK_STATE_DIR": "state"}


APART = "pods of one Deployment are alike; launcher must be processes"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"LAUNCHER": "kubernetes", "CLASSES": "small 1 1, large 2 2"}, f"TAILPACK_CLASSES = .*: {APART}"),
        ({"LAUNCHER": "keda", "SPEEDS": "1, 0.5"}, f"TAILPACK_SPEEDS = .*: {APART}"),
        ({"SPEEDS": "1, fast"}, "TAILPACK_SPEEDS = '1, fast'"),
        ({"SLOW_FACTOR": "2"}, "TAILPACK_SLOW_FACTOR = 2.0: .* needs start_file"),
        ({"SLOW_FACTOR": "2", "START_FILE": "s", "LAUNCHER": "kubernetes"}, "only processes of this machine"),
    ],
)
def test_replicas_do_not_differ_where_nothing_would_make_them(told: dict[str, str], said: str) -> None:
    environ = GOOD | {f"TAILPACK_{name}": value for name, value in told.items()}
    with pytest.raises(InvalidSettingsError, match=said):
        from_environment(environ, AutoscalerSettings)


def test_the_process_names_every_mistake_on_its_own_line_and_exits_with_2() -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    wrong = {"TAILPACK_PAYMENT_PARTITIONS": "many", "TAILPACK_HTTP_PORT": "x", "TAILPACK_STATE_DIR": "state"}
    ended = subprocess.run(
        [sys.executable, "-m", "autoscaler.live"],
        env=environ | wrong,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 4
    for name in ("BOOTSTRAP_SERVERS", "POLICY", "PAYMENT_PARTITIONS", "HTTP_PORT"):
        assert f"TAILPACK_{name}" in ended.stderr


def test_options_of_the_policy_are_a_json_object_and_checked_by_the_policy() -> None:
    tail_aware = GOOD | {"TAILPACK_POLICY": "tail-aware"}
    told = from_environment(tail_aware | {"TAILPACK_POLICY_OPTIONS": '{"patience_s": 5}'}, AutoscalerSettings)
    assert policy_from(told).name == "tail-aware"
    for options, said in (
        ("{", "must be a JSON object"),
        ('{"patience": 5}', "patience: unknown; did you mean patience_s"),
    ):
        wrong = from_environment(tail_aware | {"TAILPACK_POLICY_OPTIONS": options}, AutoscalerSettings)
        with pytest.raises(ValueError, match=said):
            policy_from(wrong)


def test_a_state_folder_belongs_to_one_autoscaler_at_a_time(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with only_one(state), pytest.raises(StateDirTakenError, match="another autoscaler"), only_one(state):
        pass
    with only_one(state):
        assert list(state.iterdir()) == [], "no lock file"


def test_replicas_are_not_told_the_port_of_their_autoscaler(tmp_path: Path) -> None:
    told = GOOD | {"TAILPACK_STATE_DIR": str(tmp_path), "TAILPACK_HTTP_PORT": "8080"}
    launcher = launcher_from(from_environment(told, AutoscalerSettings), told)
    assert launcher._environ["TAILPACK_HTTP_PORT"] == "-1", "any free one"


FILE = """
bootstrap_servers = "127.0.0.1:9092"
namespace = "greeters"
topic = "names"
group = "greeters"
policy = "tail-aware"
latency_target_s = 0.25
state_dir = "state"
replica_command = "python 'my greeter.py'"
[policy_options]
patience_s = 5
"""


def in_file(folder: Path, text: str, environ: dict[str, str] | None = None) -> Told:
    path = folder / "own.toml"
    path.write_text(text)
    return read(path, environ or {})


def problems(folder: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        in_file(folder, text, environ)
    return [one.replace(f"{folder}/", "") for one in wrong.value.problems]


def test_a_file_and_the_environment_say_the_same(tmp_path: Path) -> None:
    by_file = in_file(tmp_path, FILE)
    by_environment = read(None, by_file.environ)
    assert by_file.settings == by_environment.settings
    assert by_file.connection == by_environment.connection
    assert by_file.settings.latency_target_s == 0.25
    assert by_file.settings.topic_in("greeters") == "names"


def test_replicas_are_told_what_the_file_says(tmp_path: Path) -> None:
    environ = in_file(tmp_path, FILE + "\n", {"PATH": "/bin"}).environ
    assert environ["PATH"] == "/bin"

    replica = from_environment({**environ, "TAILPACK_REPLICA": "greeter-0"}, ConsumerSettings)
    assert (replica.topic, replica.group, replica.session_s) == ("names", "greeters", Options().session_s)
    assert from_environment(environ, Connection).namespace == "greeters"


def test_every_mistake_is_told_at_once_by_its_place(tmp_path: Path) -> None:
    text = 'grop = "g"\nlatency_target_s = "soon"\npolicy = "tail-aware"\nsasl_password = "x"\nstate_dir = "s"\n'
    said = problems(tmp_path, text, {"TAILPACK_SESSION_S": "0"})
    assert said[0] == "own.toml: grop: unknown; did you mean group?"
    assert said[1].startswith("own.toml: sasl_password: no secret belongs into this file; name a file")
    assert "own.toml: bootstrap_servers: missing" in said
    assert any(one.startswith("own.toml: latency_target_s = 'soon': ") for one in said)
    assert any(one.startswith("TAILPACK_SESSION_S = '0': must be at least 1 s") for one in said)
    assert len(said) == 5


def test_a_setting_below_the_table_of_options_is_told_where_it_belongs(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, FILE + 'launcher = "kubernetes"\nkubernetes_context = "here"\n')
    assert said.endswith(
        "; kubernetes_context, launcher: below [policy_options], so inside it; settings stand above that line"
    )
