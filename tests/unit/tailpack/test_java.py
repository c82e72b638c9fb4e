"""A missing, old or broken Java is named in one line with how to install one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailpack.errors import TailpackError
from tailpack.local.java import java


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    java.cache_clear()
    yield
    java.cache_clear()


def pretend_java(home: Path, said: str) -> None:
    binary = home / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    binary.chmod(0o755)


def test_java_17_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_java(tmp_path, 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java() == str(tmp_path / "bin" / "java")


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_412"])
def test_an_old_java_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    pretend_java(tmp_path, f'openjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        TailpackError, match=r"Java 17 or newer is needed, .* is version (11|8); install one: .*apt-get"
    ):
        java()


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TailpackError, match=r"java is not on the PATH; install one: .*brew install"):
        java()
