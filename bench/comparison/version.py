"""Which code a result was computed by: equal files, equal results, whatever the commit."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DECIDING: Final = (
    "autoscaler/*.py",
    "autoscaler/estimation/**/*.py",
    "autoscaler/packing/**/*.py",
    "autoscaler/policies/**/*.py",
    "autoscaler/simulator/**/*.py",
    "bench/exact_packing.py",
    "report/measures.py",
    "bench/simulation/**/*.py",
    "loadgen/*.py",
)
"""What a simulated result follows from, besides its scenario."""


@cache
def code_version(root: Path = ROOT) -> str:
    """Return a fingerprint of the files that results follow from."""
    digest = sha256()
    for path in sorted({path for pattern in DECIDING for path in root.glob(pattern)}):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
