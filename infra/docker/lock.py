"""Writes the lock files of the images' Python packages, with hashes. Run `make lock` after each change of packages."""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
BASE: Final = "kubernetes,keda,traces"
"""Extras of the image `tailpack`. `report` adds `load`, `bench` and `spark`."""


def resolve(*words: str) -> dict[str, str]:
    """Return NAME==VERSION → SHA-256 of the files that pip would install. Raises CalledProcessError."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    found = json.loads(subprocess.run([*command, *words], stdout=subprocess.PIPE, check=True).stdout)["install"]
    files = {f"{pkg['metadata']['name'].lower()}=={pkg['metadata']['version']}": pkg["download_info"] for pkg in found}
    return {pin: file["archive_info"]["hashes"]["sha256"] for pin, file in files.items() if "archive_info" in file}


if (platform.system(), platform.machine(), *sys.version_info[:2]) != ("Linux", "x86_64", 3, 11):
    sys.exit("lock: the images have Linux, amd64 and Python 3.11; run this in a container of their base image")
base = resolve(f"{FOLDER.parents[1]}[{BASE}]", "setuptools>=77")
whole = resolve(f"{FOLDER.parents[1]}[{BASE},load,bench,spark]", *base)
for image, pins in {"tailpack": base.keys(), "report": whole.keys() - base.keys()}.items():
    lines = (f"{pin} --hash=sha256:{whole[pin]}\n" for pin in sorted(pins))
    (FOLDER / f"{image}.lock").write_text("".join(lines), encoding="utf-8")
