from pathlib import Path

import pytest

from autoscaler.live.composition import policy_from
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.start import StartupConfig, lock_state_dir, read
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment
from services.consumer import Options
from services.consumer.environment import ConsumerSettings

GOOD = {"TAILPACK_POLICY": "algorithm-2", "TAILPACK_PAYMENT_PARTITIONS": "5", "TAILPACK_STATE_DIR": "state"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAYMENT_PARTITIONS", "-1"),
        ("RUNTIME", "kafka-streams"),
    ],
)
def test_values_out_of_range_are_named(name: str, value: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"(?i){name}"):
        from_environment(GOOD | {f"TAILPACK_{name}": value}, AutoscalerSettings)


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
    with lock_state_dir(state), pytest.raises(InvalidSettingsError, match="another autoscaler"), lock_state_dir(state):
        pass
    with lock_state_dir(state):
        assert list(state.iterdir()) == [], "no lock file"


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


def in_file(folder: Path, text: str, environ: dict[str, str] | None = None) -> StartupConfig:
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
    assert said[1].startswith("own.toml: sasl_password: secrets do not belong in this file")
    assert "own.toml: bootstrap_servers: missing" in said
    assert any(one.startswith("own.toml: latency_target_s = 'soon': ") for one in said)
    assert any(one.startswith("TAILPACK_SESSION_S = '0': must be at least 1 s") for one in said)
    assert len(said) == 5


@pytest.mark.parametrize(("text", "said"), [("a =", "not valid TOML"), (None, "cannot be read")])
def test_a_file_that_is_none_is_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InvalidSettingsError, match=said):
        read(tmp_path / "own.toml", {})


def test_a_wrong_option_of_the_policy_is_told_with_the_names_of_both_settings(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, FILE + "patience = 5\n")
    where, _, what = said.partition(": ")
    assert where == "policy or [policy_options] in a file (TAILPACK_POLICY, TAILPACK_POLICY_OPTIONS)"
    assert what == "policy tail-aware: patience: unknown; did you mean patience_s?"
