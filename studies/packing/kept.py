"""The comparison that is committed, and where it came from."""

from pathlib import Path

import msgspec

from bench.figures import FOLDER, Origin
from studies.packing.result import Comparison

FILE = "packing.json"


class KeptComparison(Comparison, frozen=True, kw_only=True):
    """A comparison with what is needed to repeat it."""

    origin: Origin


def keep(comparison: Comparison, origin: Origin, folder: Path) -> None:
    """Write it in place of the one before."""
    fields = {name: getattr(comparison, name) for name in comparison.__struct_fields__}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(KeptComparison(**fields, origin=origin).to_json() + b"\n")


def kept(folder: Path = FOLDER) -> KeptComparison:
    """Return the committed comparison. Raises FileNotFoundError where there is none."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=KeptComparison)
