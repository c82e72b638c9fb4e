"""What an autoscaler is told by a file and by its environment: one declaration, every mistake at once, no secret."""

from pathlib import Path

import pytest

from autoscaler.live.start import Told, read
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment
from services.consumer import Options
from services.consumer.environment import ConsumerSettings

GOOD = """
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


def told(folder: Path, text: str, environ: dict[str, str] | None = None) -> Told:
    path = folder / "own.toml"
    path.write_text(text)
    return read(path, environ or {})


def problems(folder: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        told(folder, text, environ)
    return [one.replace(f"{folder}/", "") for one in wrong.value.problems]


def test_a_file_and_the_environment_say_the_same(tmp_path: Path) -> None:
    by_file = told(tmp_path, GOOD)
    by_environment = read(None, by_file.environ)
    assert by_file.settings == by_environment.settings
    assert by_file.connection == by_environment.connection
    assert by_file.settings.latency_target_s == 0.25
    assert by_file.settings.topic_in("greeters") == "names"


def test_the_environment_stands_above_the_file(tmp_path: Path) -> None:
    changed = told(tmp_path, GOOD, {"TAILPACK_GROUP": "others", "TAILPACK_NAMESPACE": ""})
    assert (changed.settings.group, changed.connection.namespace) == ("others", "greeters")


def test_replicas_are_told_what_the_file_says(tmp_path: Path) -> None:
    environ = told(tmp_path, GOOD + "\n", {"PATH": "/bin"}).environ
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


def test_a_wrong_option_of_the_policy_is_told(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, GOOD.replace("patience_s", "no_such_option"))
    assert "no_such_option: unknown" in said


def test_a_setting_below_the_table_of_options_is_told_where_it_belongs(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, GOOD + 'launcher = "kubernetes"\nkubernetes_context = "here"\n')
    assert said.endswith(
        "; kubernetes_context, launcher: below [policy_options], so inside it; settings stand above that line"
    )


@pytest.mark.parametrize(("text", "said"), [("a =", "no TOML"), (None, "cannot be read")])
def test_a_file_that_is_none_is_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InvalidSettingsError, match=said):
        read(tmp_path / "own.toml", {})
