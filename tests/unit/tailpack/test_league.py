"""The league ranks policies on hidden scenarios, and a policy that fails loses the scenario with its error."""

import json
from pathlib import Path

import pytest
from tailpack_command import tailpack

from bench.matrix import Job
from tailpack.cli import course

POLICY = """
class {name}:
    def decide(self, observation):
        {body}
"""


@pytest.mark.long
def test_the_same_seed_gives_the_same_table_and_errors_of_policies(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(POLICY.format(name="Raises", body="return observation.nothing"))
    words = ("dev", "league", str(tmp_path / "raises.py"), "--seed", "secret", "--scenarios", "2", "--json")
    first, second = (json.loads(tailpack(*words, deadline_s=200).stdout) for _ in range(2))

    assert {one["policy"] for one in first} == {"raises.py", *course.OURS}
    (failed,) = (one for one in first if one["policy"] == "raises.py")
    assert (failed["met"], len(failed["errors"])) == (0, 1)
    assert "AttributeError" in failed["errors"][0]
    for one, other in zip(first, second, strict=True):
        assert one | {"decision_s": None} == other | {"decision_s": None}


def test_a_policy_that_decides_too_slowly_fails_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless.py").write_text(POLICY.format(name="Endless", body="while True: pass"))
    monkeypatch.setattr(course, "SIMULATOR_S", 0.1)
    with pytest.raises(ValueError, match="a decision takes more than 100 ms"):
        course.play(Job(scenario="w1", policy=str(tmp_path / "endless.py"), changes=(("duration_s", 5),)))
