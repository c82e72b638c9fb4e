"""`tailpack view`: replay finished and simulated runs on the live page."""

import gzip
import threading
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from tailpack.cli.options import NoBrowser
from tailpack.errors import TailpackError


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN_DIR…]", help="Folder of a finished or simulated run, or a saved recording."),
    ] = None,
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Replay a recorded surge under two policies.")] = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE.json.gz", help="Save the runs as one file to share.")
    ] = None,
    no_browser: NoBrowser = False,
) -> None:
    """Replay runs on the live page, with a time line; two runs are shown side by side. Ctrl-C ends it.

    It needs neither Kafka nor Java.
    """
    from tailpack import view as page  # noqa: PLC0415  numpy and pyarrow only where they are needed

    places = [*(runs or ()), *([page.DEMO] if demo else ())]
    if not places:
        raise TailpackError("name the folder of a run, such as out/NAME, or use --demo")
    console = Console(stderr=True)
    recordings = list[page.Recording]()
    for place in places:
        if place.suffix == ".gz":
            recordings += page.load_recordings(place)
            continue
        with console.status(f"reading {place}"):
            recordings.append(page.Recording(place.resolve().name, page.frames_of(place)))
    if save is not None:
        save.write_bytes(gzip.compress(msgspec.json.encode(recordings), mtime=0))
        console.print(f"saved: {save}", highlight=False, soft_wrap=True)
        return
    with page.serving(page.Viewer(recordings).respond) as address:
        Console().print(f"{address} (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        if not no_browser:
            page.open_browser(address, console)
        threading.Event().wait()
