"""The generator's own settings; names in the environment are TAILPACK_<FIELD>."""

from pathlib import Path
from typing import Annotated

import msgspec

from contracts.validation import InvalidSettingsError
from loadgen.spec import LoadSpec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator needs beside the connection to Kafka."""

    load_file: str
    """A LoadSpec as JSON."""
    out_dir: str
    """Folder for `generator.ready` and `generator.json`."""
    start_file: str
    """Holds the start of the run (µs since the epoch, decimal text); awaited once the generator is ready."""
    connect_deadline_s: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """How long the broker and the topic are awaited."""
    start_deadline_s: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """How long it is awaited."""
    drain_deadline_s: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """How long the last acknowledgements are awaited: a killed broker needs tens of seconds to recover."""
    web_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port of Locust's web page; 0: none. The load starts by itself, and the page ends with it."""
    web_host: str = "127.0.0.1"


def read_load(settings: Settings) -> LoadSpec:
    """Read the load file. Raises InvalidSettingsError, which names the file."""
    path = Path(settings.load_file)
    try:
        return msgspec.json.decode(path.read_bytes(), type=LoadSpec)
    except OSError as missing:
        raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
    except msgspec.DecodeError as wrong:
        raise InvalidSettingsError([f"{path}: {wrong}"]) from wrong
