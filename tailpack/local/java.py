"""Find a Java that can run Kafka and Spark."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tailpack.errors import TailpackError

MINIMUM: Final = 17
INSTALL: Final = (
    "install one: `sudo apt-get install openjdk-17-jre-headless` (Debian, Ubuntu) or `brew install openjdk@17` (macOS)"
)


@functools.cache
def java() -> str:
    """Return the path of a Java ≥ 17: $JAVA_HOME first, then the search path.

    Raises TailpackError when there is none, or only an older one.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(candidate)
    if not found:
        where = f"JAVA_HOME={home} holds no bin/java" if home else "java is not on the PATH"
        raise TailpackError(f"Java {MINIMUM} or newer is needed, {where}; {INSTALL}")
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as broken:
        raise TailpackError(f"{found} does not run ({broken}); {INSTALL}") from broken
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None:  # macOS ships a stub that only tells where to get Java
        raise TailpackError(f"{found} is not a working Java; {INSTALL}")
    if int(version.group(1)) < MINIMUM:
        raise TailpackError(f"Java {MINIMUM} or newer is needed, {found} is version {version.group(1)}; {INSTALL}")
    return found
