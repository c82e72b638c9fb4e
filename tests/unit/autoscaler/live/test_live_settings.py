import os
import subprocess
import sys
from pathlib import Path

import pytest

from autoscaler.live.composition import launcher_from, policy_from
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.start import StateDirTakenError, only_one
from contracts.validation import InvalidSettingsError, from_environment

GOOD = {"TAILPACK_POLICY": "algorithm-2", "TAILPACK_PAYMENT_PARTITIONS": "5", "TAILPACK_STATE_DIR": "state"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAYMENT_PARTITIONS", "-1"),
        ("TICK_OFFSET_S", "1.0"),
        ("INITIAL_REPLICAS", "6"),
        ("ABSENCE_GRACE_S", "-1"),
        ("RUNTIME", "kafka-streams"),
    ],
)
def test_values_out_of_range_are_named(name: str, value: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"(?i){name}"):
        from_environment(GOOD | {f"TAILPACK_{name}": value}, AutoscalerSettings)


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
