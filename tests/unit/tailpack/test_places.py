"""Runs get folders of their own, and nothing that is there already is written over."""

import time
from pathlib import Path

import pytest

from report.run_info import RUN_FILE
from tailpack.errors import TailpackError
from tailpack.local.broker import default_folder
from tailpack.local.places import free_for_run, new_folder


def test_the_broker_lives_where_the_system_keeps_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "tailpack" / "kafka"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local" / "state" / "tailpack" / "kafka"


def test_two_runs_of_the_same_second_get_two_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "20260105-101500")
    folders = [new_folder(tmp_path / "out", "demo") for _ in range(3)]
    assert [folder.name for folder in folders] == [
        "demo-20260105-101500",
        "demo-20260105-101500-1",
        "demo-20260105-101500-2",
    ]
    assert all(folder.is_dir() for folder in folders)


def test_a_folder_may_be_there_but_must_hold_no_run(tmp_path: Path) -> None:
    (tmp_path / "mine" / "logs").mkdir(parents=True)
    assert free_for_run(tmp_path / "mine") == tmp_path / "mine"
    (tmp_path / "mine" / RUN_FILE).write_text("{}")
    with pytest.raises(TailpackError, match="mine holds a run already; choose another name, or move it away"):
        free_for_run(tmp_path / "mine")
