"""Build the jar with the assignor that reads plans. Every broker needs it if `consumers = assigned`.

`python -m autoscaler.live.foreign.assignor FOLDER LIBS` writes it into a folder. LIBS: folder of a broker's jars.
The same javac always writes the same bytes.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contracts.validation import InvalidSettingsError, cache_folder

CLASS: Final = "tailpack.kafka.PlannedUniformAssignor"
JAR: Final = "tailpack-assignor.jar"
SOURCES: Final = sorted((Path(__file__).parent / "java").glob("*.java"))
COMPILE_DEADLINE_S: Final = 120


def jar_path() -> Path:
    """Return the path of the jar in the cache. Each version of the sources has its own."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    return cache_folder() / f"assignor-{hashlib.sha256(text).hexdigest()[:12]}" / JAR


def build(target: Path, libraries: Path, java: str = "java", sources: Sequence[Path] = SOURCES) -> Path:
    """Build a jar if it does not exist, and return its path. libraries: Kafka's jars.

    java: the program; the compiler is in its folder. Raises InvalidSettingsError if there is none.
    """
    if target.exists():
        return target
    compiler = Path(shutil.which(java) or java).resolve().with_name("javac")
    if not compiler.exists():
        remedy = f"install openjdk-17-jdk-headless, or build {target.name} on another machine and copy it to {target}"
        raise InvalidSettingsError([f"{compiler} is missing: a JRE cannot build {target.name}; {remedy}"])
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        command = [str(compiler), "--release", "17", "-proc:none", "-Werror", "-cp", f"{libraries}/*", "-d", scratch]
        command += map(str, sources)
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_DEADLINE_S, check=False)
        if done.returncode:
            error = done.stderr.strip().splitlines()[0]
            raise InvalidSettingsError([f"{target.name} cannot be compiled: {error}"])
        fresh = Path(scratch) / target.name
        with zipfile.ZipFile(fresh, "w") as jar:  # uncompressed, with a fixed date: the same bytes each time
            for file in sorted(Path(scratch).rglob("*.class")):
                jar.writestr(zipfile.ZipInfo(file.relative_to(scratch).as_posix()), file.read_bytes())
        fresh.replace(target)  # a running process keeps its jar
    return target


if __name__ == "__main__":
    (Path(sys.argv[1]) / JAR).unlink(missing_ok=True)  # it may be of older sources
    print(build(Path(sys.argv[1]) / JAR, Path(sys.argv[2])))  # noqa: T201
