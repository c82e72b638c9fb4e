"""Find Java, and download the jars of Kafka from Maven Central: once, verified, outside the checkout.

A lock file lists every jar with its SHA-256. Verified jars are stored in a cache, so that later starts need no network.
"""

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from contracts.validation import cache_folder
from tailpack.errors import TailpackError

LOCK: Final = Path(__file__).parent / "locks" / "kafka.lock"
MAX_CONNECTIONS: Final = 8
ANSWER_TIMEOUT_S: Final = 60
"""Maximum time until a repository answers, in seconds."""
MIN_JAVA: Final = 17
INSTALL_HINT: Final = (
    "install one: `sudo apt-get install openjdk-17-jre-headless` (Debian, Ubuntu) or `brew install openjdk@17` (macOS)"
)


class Jar(NamedTuple):
    """One line of a lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """File name in the folder of the jars."""
        return f"{self.artifact}-{self.version}.jar"


def locked() -> list[Jar]:
    """Return the jars in the lock file."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return [Jar(*coordinates.split(":"), sha256=sha256) for coordinates, sha256 in rows]  # type: ignore[misc]


def kafka_jars(announce: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder with the jars of Kafka. Download them if one is missing or differs from the lock file.

    announce: called once, before a download. Raises TailpackError if a jar cannot be downloaded or verified.
    """
    jars = locked()
    folder = cache_folder() / "kafka"
    if not _invalid_jars(jars, folder):
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        handle = os.open(cache_folder(), os.O_RDONLY)
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)  # the folder is locked, not a file: nothing remains, even after SIGKILL
        if not _invalid_jars(jars, folder):  # another process has downloaded them meanwhile
            return folder
        announce(f"downloading Apache Kafka 4.3.1 (46 MB) from Maven Central, once, into {folder}")
        fresh = Path(tempfile.mkdtemp(prefix="kafka-", dir=cache_folder()))
        try:
            _fetch(jars, fresh)
            if invalid := _invalid_jars(jars, fresh):
                raise TailpackError(f"{invalid[0]}: checksum differs from the lock file: not installed; try again")
            fresh.chmod(0o755)  # an image is built as root and run as another user
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


@functools.cache
def java() -> str:
    """Return the path of Java ≥ 17, from $JAVA_HOME if it is set, else from PATH.

    Raises TailpackError if Java is missing or too old.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(candidate)
    if not found:
        where = f"JAVA_HOME={home} has no bin/java" if home else "java is not on the PATH"
        raise TailpackError(f"Java {MIN_JAVA} or newer is required, but {where}; {INSTALL_HINT}")
    try:
        output = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TailpackError(f"{found} does not run ({error}); {INSTALL_HINT}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None:  # macOS ships a stub that only prints a download link
        raise TailpackError(f"{found} is not a working Java; {INSTALL_HINT}")
    if int(version[1]) < MIN_JAVA:
        raise TailpackError(f"Java {MIN_JAVA} or newer is required, {found} is version {version[1]}; {INSTALL_HINT}")
    return found


def payment_consumer() -> list[str]:
    """Return the command of PaymentConsumer.java, which is compiled once.

    Raises InvalidSettingsError if no compiler is installed.
    """
    from autoscaler.live.foreign.assignor import build  # noqa: PLC0415  only one kind of replica needs it

    source = Path(__file__).parents[1] / "PaymentConsumer.java"
    folder = cache_folder() / f"java-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    archive, libraries = folder / "classes.jsa", kafka_jars()
    flags = ["-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF", "-Xlog:cds=off"]
    jar = build(folder / "consumer.jar", libraries, java(), [source])
    start = [java(), *flags, "-cp", f"{jar}:{libraries}/*"]
    if not archive.exists():  # with it, a start takes half of the processor time
        own = folder / f"{os.getpid()}.jsa"
        environ = os.environ | {"TAILPACK_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
        load = [*start, f"-XX:ArchiveClassesAtExit={own}", "PaymentConsumer", "load"]
        subprocess.run(load, env=environ, capture_output=True, timeout=120, check=False)
        with suppress(OSError):  # starts only take longer
            own.rename(archive)
    return [*start, f"-XX:SharedArchiveFile={archive}", "PaymentConsumer"]


def _invalid_jars(jars: list[Jar], folder: Path) -> list[str]:
    return [jar.file for jar in jars if not (folder / jar.file).is_file() or _sha256(folder / jar.file) != jar.sha256]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(jars: list[Jar], folder: Path) -> None:
    """Download the jars in parallel from Maven Central, or from the repositories of the user's jgo settings."""
    import truststore  # noqa: PLC0415
    from jgo.config import GlobalSettings  # noqa: PLC0415  half a second, needed only here
    from jgo.maven import MavenContext  # noqa: PLC0415

    truststore.inject_into_ssl()  # as pip does: trust the certificates of the system
    with tempfile.TemporaryDirectory(dir=folder) as repository:
        repositories = GlobalSettings.load().repositories or None
        maven = MavenContext(repo_cache=Path(repository), remote_repos=repositories, timeout=ANSWER_TIMEOUT_S)

        def download(jar: Jar) -> None:
            artifact = maven.project(jar.group, jar.artifact).at_version(jar.version).artifact()
            artifact.resolve().replace(folder / jar.file)

        pool = ThreadPoolExecutor(MAX_CONNECTIONS)
        try:
            list(pool.map(download, jars))
        except (OSError, RuntimeError, ValueError) as error:  # jgo's errors are subclasses
            why = f"a jar could not be downloaded from Maven Central ({error}); check the network, try again"
            raise TailpackError(why) from error
        finally:
            pool.shutdown(cancel_futures=True)
