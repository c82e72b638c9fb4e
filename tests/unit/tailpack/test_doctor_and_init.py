"""`doctor` says what is missing; what `init` writes is accepted by the product."""

import json
import shlex
from pathlib import Path

import command_line
import pytest

from autoscaler.live.configuration import read
from autoscaler.policies.registry import make_policy
from bench.scenario import load_scenario
from tailpack.errors import TailpackError


def test_each_written_file_is_accepted_and_none_is_overwritten(tmp_path: Path) -> None:
    for kind, file in {"group": "group.toml", "scenario": "spiky.toml", "policy": "my own.py"}.items():
        printed = command_line.run("init", kind, tmp_path / file).stdout
        assert shlex.split(printed)[-1] == str(tmp_path / file)
        text = (tmp_path / file).read_text()
        assert ("# " in text, file in text) == (True, True)
        with pytest.raises(TailpackError, match="exists; choose another name"):
            command_line.run("init", kind, tmp_path / file)
        assert (tmp_path / file).read_text() == text
    settings = read(tmp_path / "group.toml", {}).settings
    assert (settings.act, settings.max_replicas, settings.startup_s, settings.cool_down_down_s) == ("off", 12, 25, 60)
    assert load_scenario(str(tmp_path / "spiky.toml")).payment.service_time_s == 0.005
    assert make_policy(str(tmp_path / "my own.py")).name == "mine"
    with pytest.raises(TailpackError, match="did you mean policy"):
        command_line.run("init", "polcy", tmp_path / "x")


def test_doctor_ends_with_status_1_if_a_row_needs_a_fix() -> None:
    done = command_line.run("doctor", "--bootstrap-servers", "127.0.0.1:1", "--json")
    rows = {row["what"]: row for row in json.loads(done.stdout)["checks"]}
    assert (done.exit_code, rows["Kafka"]["ok"], rows["Python"]["ok"]) == (1, False, True)
    assert "start it" in rows["Kafka"]["fix"]
    assert rows.keys() >= {"Java", "cores", "memory", "disk", "port", "Docker", "kubeconfig"}
    assert "\u2717 Kafka" in command_line.run("doctor", "--bootstrap-servers", "127.0.0.1:1").stdout
