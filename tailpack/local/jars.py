"""Bring jars from Maven Central by the Apache Ivy that PySpark ships; once, checked, outside the checkout.

A lock file names every jar with its SHA-256, so nothing is resolved that was not chosen, and a later start is offline.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tailpack.errors import TailpackError
from tailpack.local.java import java

Bundle = Literal["kafka", "spark"]
TITLES: Final[dict[Bundle, str]] = {"kafka": "Apache Kafka 4.3.1 (46 MB)", "spark": "Spark's Kafka connector (10 MB)"}
DEADLINE_S: Final = 600.0
SETTINGS: Final = """<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>
"""


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of a lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Name of the file in the bundle's folder."""
        return f"{self.artifact}-{self.version}.jar"


def cache_folder() -> Path:
    """Return ${XDG_CACHE_HOME:-~/.cache}/tailpack."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailpack"


def locked(bundle: Bundle) -> list[Jar]:
    """Return the jars that the lock file of `bundle` names."""
    lines = (Path(__file__).parent / "locks" / f"{bundle}.lock").read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return [Jar(*coordinates.split(":"), sha256=sha256) for coordinates, sha256 in rows]  # type: ignore[misc]


def ensure(bundle: Bundle, announce: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder that holds every jar of `bundle`, fetching it when it is not there or not whole.

    announce: told once, before a download. Raises TailpackError when a jar cannot be fetched or is not the locked one.
    """
    jars = locked(bundle)
    folder = cache_folder() / bundle
    if not _wrong(jars, folder):
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with _only_one(cache_folder()):
        if not _wrong(jars, folder):  # another process fetched it while we waited
            return folder
        announce(f"fetching {TITLES[bundle]} from Maven Central, once, into {folder}")
        fresh = Path(tempfile.mkdtemp(prefix=f"{bundle}-", dir=cache_folder()))
        try:
            _fetch(jars, fresh)
            if wrong := _wrong(jars, fresh):
                raise TailpackError(f"{wrong[0]}: the checksum is not the locked one; nothing was installed, try again")
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def classpath(folder: Path) -> str:
    """Return Java's wildcard for all jars of `folder`."""
    return str(folder / "*")


def _wrong(jars: list[Jar], folder: Path) -> list[str]:
    """Names of the jars that are missing in `folder` or differ from the lock."""
    return [jar.file for jar in jars if not (folder / jar.file).is_file() or _sha256(folder / jar.file) != jar.sha256]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(jars: list[Jar], folder: Path) -> None:
    wanted = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" conf="*->master"/>'
        for jar in jars
    )
    (folder / "settings.xml").write_text(SETTINGS, encoding="utf-8")
    (folder / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="tailpack" module="jars"/>'
        f"<dependencies>{wanted}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    command = [
        java(), "-cp", classpath(_pyspark_jars()), "org.apache.ivy.Main",
        "-settings", "settings.xml", "-ivy", "ivy.xml", "-cache", str(folder / "ivy"),
        "-retrieve", "[artifact]-[revision].[ext]",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as slow:
        raise TailpackError(
            f"Maven Central did not deliver within {DEADLINE_S:.0f} s; check the network, try again"
        ) from slow
    if done.returncode:
        problems = [
            line.strip()
            for line in done.stdout.splitlines()
            if "not found" in line or "ERRORS" in line or "Exception" in line
        ]
        why = problems[0] if problems else "Ivy gave up"
        raise TailpackError(f"Maven Central could not be reached or lacks a jar ({why}); check the network, try again")
    for leftover in ("settings.xml", "ivy.xml"):
        (folder / leftover).unlink()
    shutil.rmtree(folder / "ivy")


def _pyspark_jars() -> Path:
    spec = importlib.util.find_spec("pyspark")  # found, not imported: importing it costs a second
    if spec is None or spec.origin is None:
        raise TailpackError(
            "pyspark is not installed, and with it Ivy; `make` installs it, or: pip install 'tailpack[bench]'"
        )
    return Path(spec.origin).parent / "jars"


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(
            handle, fcntl.LOCK_EX
        )  # on the folder itself: no lock file, and the kernel frees it when we are killed
        yield
    finally:
        os.close(handle)
