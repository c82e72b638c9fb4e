"""The commands of the experiments: what cannot be is one line, before anything is started."""

import sys

import pytest

from tailpack.cli import main as cli
from tailpack.labs import lab


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(_: object) -> None:
        raise AssertionError("a mistake must be told before anything is started")

    monkeypatch.setattr(lab.Lab, "_build", started)


def tailpack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[object, str, str]:
    monkeypatch.setattr(sys, "argv", ["tailpack", *words])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    return ended.value.code, out, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("handover", "--runtime", "stock"), "--runtime 'stock' is unknown; known are incremental, eager"),
        (("handover", "--steps", "wild"), "--steps 'wild' is unknown; known are mixed, random, storm, slow-event"),
        (("handover", "--steps", "storm", "--runtime", "faust"), "--steps storm needs a plan, and faust takes none"),
        (("handover", "--steps", "slow-event", "--replicas", "2"), "--steps slow-event needs --replicas 3 at least"),
        (("handover", "--handovers", "0"), "Invalid value for '--handovers'"),
        (("failover", "--runtime", "share"), "--runtime share takes no plan; use incremental, eager"),
        (("scale", "--moved", "500"), "--moved 500 is more than --partitions 200"),
        (("growth", "--delivery", "kip848"), "--runtime kip848 takes no plan"),
        (("bounce", "--target", "0"), "Invalid value for '--target'"),
    ],
    ids=lambda one: " ".join(one[:3]) if isinstance(one, tuple) else "",
)
def test_what_cannot_be_is_one_line_and_exit_status_2(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = tailpack(monkeypatch, capsys, "bench", *words, "--json")
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["handover", "failover", "scale", "growth", "bounce"])
def test_every_experiment_has_help(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = tailpack(monkeypatch, capsys, "bench", command, "--help")
    assert status in {0, None}
    assert "--json" in out
    assert "--into" in out
