"""The commands of the experiments on handovers: what cannot be is one line, before anything is started."""

import sys

import pytest

from bench.handover import courses
from tailpack.cli import main as cli


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object) -> None:
        raise AssertionError("a mistake must be told before anything is started")

    monkeypatch.setattr(courses, "conduct", started)


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
        (("handover", "--runtime", "stock"), "'stock' is not one of 'incremental', 'eager', 'cooperative-sticky'"),
        (("handover", "--steps", "storm", "--runtime", "faust"), "steps storm need a plan, and faust takes none"),
        (("handover", "--handovers", "0"), "Invalid value for '--handovers'"),
        (("failover", "--delivery", "share"), "share takes no plan; use incremental or eager"),
        (("scale", "--replicas", "1"), "Invalid value for '--replicas'"),
        (("growth", "--delivery", "kip848"), "kip848 takes no plan"),
        (("bounce", "--rounds", "0"), "Invalid value for '--rounds'"),
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
