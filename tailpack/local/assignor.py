"""Build the jar with the assignor that reads plans. Every broker needs it if `consumers = assigned`.

`python -m tailpack.local.assignor FOLDER` writes it into a folder. The same javac makes the same bytes.
"""

import hashlib
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from contracts.validation import cache_folder
from tailpack.errors import TailpackError
from tailpack.local.jars import compile_java

CLASS: Final = "tailpack.kafka.PlannedUniformAssignor"
JAR: Final = "tailpack-assignor.jar"
SOURCES: Final = sorted((Path(__file__).parent / "java").glob("*.java"))


def jar_path() -> Path:
    """Return the path of the jar in the cache. Each version of the sources has its own."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    return cache_folder() / f"assignor-{hashlib.sha256(text).hexdigest()[:12]}" / JAR


def build(target: Path | None = None) -> Path:
    """Build the jar if it does not exist; return its path. None: in the cache. Raises TailpackError without a JDK."""
    target = target or jar_path()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        try:
            compile_java(SOURCES, Path(scratch))
        except TailpackError as failed:
            raise TailpackError(f"{failed}, or build {JAR} on another machine and copy it to {target}") from failed
        fresh = Path(scratch) / JAR
        with zipfile.ZipFile(fresh, "w") as jar:  # uncompressed, with a fixed date: the same bytes each time
            for file in sorted(Path(scratch).rglob("*.class")):
                jar.writestr(zipfile.ZipInfo(file.relative_to(scratch).as_posix()), file.read_bytes())
        fresh.replace(target)  # a running broker keeps its jar
    return target


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) / JAR))  # noqa: T201
