"""Jars are used only if all of them match the lock file. A missing or old Java is reported in one line."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailpack.errors import TailpackError
from tailpack.local import jars
from tailpack.local.jars import Jar, java


@pytest.fixture
def one_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file of one jar, `thing-1.jar`, whose locked content is b"good"; returns the cache folder."""
    jar = Jar("org.example", "thing", "1", sha256=hashlib.sha256(b"good").hexdigest())
    monkeypatch.setattr(jars, "locked", lambda: [jar])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tailpack"


def deliver(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[Path]:
    """Let Maven Central hold `content`; returns the folders that were asked for."""
    asked: list[Path] = []

    def fetch(_: list[Jar], folder: Path) -> None:
        asked.append(folder)
        (folder / "thing-1.jar").write_bytes(content)

    monkeypatch.setattr(jars, "_fetch", fetch)
    return asked


def test_a_second_start_downloads_nothing(one_jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = deliver(monkeypatch, b"good")
    messages: list[str] = []
    assert jars.kafka_jars(messages.append) == one_jar / "kafka"
    assert jars.kafka_jars(messages.append) == one_jar / "kafka"
    assert len(asked) == len(messages) == 1
    assert [path.name for path in one_jar.iterdir()] == ["kafka"], "no temporary folder, no lock file"
    assert (one_jar / "kafka").stat().st_mode & 0o777 == 0o755, "an image is built as root and run as another user"


def test_a_jar_with_a_wrong_checksum_is_not_installed(one_jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(monkeypatch, b"tampered")
    with pytest.raises(TailpackError, match=r"thing-1\.jar: checksum"):
        jars.kafka_jars()
    assert list(one_jar.iterdir()) == []


def test_a_damaged_jar_is_downloaded_again(one_jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = deliver(monkeypatch, b"good")
    jars.kafka_jars()
    (one_jar / "kafka" / "thing-1.jar").write_bytes(b"bit rot")
    jars.kafka_jars()
    assert len(asked) == 2
    assert (one_jar / "kafka" / "thing-1.jar").read_bytes() == b"good"


def test_the_lock_file_names_each_jar_once_with_a_sha256() -> None:
    found = jars.locked()
    assert len({jar.file for jar in found}) == len(found) > 3
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in found)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    java.cache_clear()
    yield
    java.cache_clear()


def pretend_java(home: Path, version_text: str) -> None:
    binary = home / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\necho '{version_text}' >&2\n")
    binary.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "refused"), [("17.0.15", ""), ("21", ""), ("11.0.2", "version 11"), ("1.8.0_412", "version 8")]
)
def test_java_17_is_accepted_and_an_older_version_is_rejected_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, refused: str
) -> None:
    pretend_java(tmp_path, f'openjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if not refused:
        assert java() == str(tmp_path / "bin" / "java")
        return
    with pytest.raises(TailpackError, match=rf"Java 17 .* is {refused}; .*apt-get"):
        java()
