from pathlib import Path

import pytest

from bench.report_speed import class_archive
from report.spark.class_archive import options


def test_an_archive_is_an_option_where_it_is_there(tmp_path: Path) -> None:
    archive = tmp_path / "with a blank.jsa"
    assert options(archive) == "", "a JVM told of a file that is not there would do without its own archive too"
    archive.touch()
    assert options(archive).endswith(f'-XX:SharedArchiveFile="{archive}"'), "one word, also with a blank in it"


def test_where_it_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "spark.jsa"
    monkeypatch.setattr("sys.argv", ["class_archive", str(place)])
    assert class_archive.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"no class archive at {place}: ")
