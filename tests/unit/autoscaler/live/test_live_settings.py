from pathlib import Path

import pytest

from autoscaler.live.configuration import StartupConfig, read
from autoscaler.live.start import lock_state_dir
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment
from services.consumer import Options
from services.consumer.environment import ConsumerSettings


def test_only_one_autoscaler_uses_a_state_folder(tmp_path: Path) -> None:
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
keep_s = 5
"""


def in_file(folder: Path, text: str, environ: dict[str, str] | None = None) -> StartupConfig:
    path = folder / "own.toml"
    path.write_text(text)
    return read(path, environ or {})


def problems(folder: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        in_file(folder, text, environ)
    return [one.replace(f"{folder}/", "") for one in wrong.value.problems]


def test_a_file_and_the_environment_give_equal_settings(tmp_path: Path) -> None:
    by_file = in_file(tmp_path, FILE)
    by_environment = read(None, by_file.environ)
    assert by_file.settings == by_environment.settings
    assert by_file.connection == by_environment.connection
    assert by_file.settings.latency_target_s == 0.25
    assert by_file.settings.topic_in("greeters") == "names"


def test_replicas_get_the_settings_of_the_file(tmp_path: Path) -> None:
    environ = in_file(tmp_path, FILE + "\n", {"PATH": "/bin"}).environ
    assert environ["PATH"] == "/bin"

    replica = from_environment({**environ, "TAILPACK_REPLICA": "greeter-0"}, ConsumerSettings)
    assert (replica.topic, replica.group, replica.session_s) == ("names", "greeters", Options().session_s)
    assert from_environment(environ, Connection).namespace == "greeters"


def test_all_invalid_settings_are_reported_at_once_with_their_places(tmp_path: Path) -> None:
    text = 'grop = "g"\nlatency_target_s = "soon"\npolicy = "tail-aware"\nsasl_password = "x"\nstate_dir = "s"\n'
    lines = problems(tmp_path, text, {"TAILPACK_SESSION_S": "0"})
    assert lines[0] == "own.toml: grop: unknown; did you mean group?"
    assert lines[1].startswith("own.toml: sasl_password: secrets do not belong in this file")
    assert "own.toml: bootstrap_servers: missing" in lines
    assert any(one.startswith("own.toml: latency_target_s = 'soon': ") for one in lines)
    assert any(one.startswith("TAILPACK_SESSION_S = '0': must be at least 1 s") for one in lines)
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("text", "message"), [("a =", "not valid TOML"), ("a=" + "[" * 9000, "not valid TOML"), (None, "cannot be read")]
)
def test_an_unreadable_file_is_reported_in_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InvalidSettingsError, match=message):
        read(tmp_path / "own.toml", {})
