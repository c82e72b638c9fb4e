"""Follow a page of the documentation as a user does: its files written, its lines typed, from top to bottom.

`python docs/follow.py docs/howto/operate.md --kafka 127.0.0.1:9092` follows one page in a copy of the checkout; tests
follow all tutorials and how-to guides. A word after a fence's language, which forges do not show, tags a block:

    ```sh background      runs until the page has ended, then gets Ctrl-C: status 0 or 130
    ```sh status=4        ends with this exit status; else 0
    ```sh kubernetes      belongs to that suite (or `containers`) alone, as does every file for it

A block whose first line is `# NAME` is the file NAME (`# NAME, more`: appended). Other `python` blocks are run, other
`toml` blocks must have settings that exist. A block in an HTML comment, `<!-- sh …-->`, prepares what the page
requires, such as events in a topic. Ports of the page stand for free ones, Kafka's addresses for that of `--kafka`.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from generators.settings import places

from autoscaler.live.settings import AutoscalerSettings
from bench.sections import OPTIONS, SECTIONS, STAGES
from tailpack.errors import INTERRUPTED
from tailpack.local.ports import free_port

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SUITES = ("containers", "kubernetes")
TAGS = re.compile(rf"background|status=\d+|{'|'.join(SUITES)}")
FENCE = re.compile(r"^```(\w+)(.*)\n((?:.*\n)*?)```$|^<!-- (sh)(.*)\n((?:.*\n)*?)-->$", re.MULTILINE)
FILE = re.compile(r"# ([\w./-]+\.\w+|Dockerfile)(, more)?\n")
PORT = re.compile(r"(?:(?:127\.0\.0\.1|localhost):|_port = )(\d{4,5})")
KEY = re.compile(r"^\[*([\w.]+)(?:\]| =)", re.MULTILINE)
RAILS = {"rails", *AutoscalerSettings.TABLES["rails"]}
KAFKA = ("127.0.0.1:9092", "kafka:9092")
CURL = "curl --retry 60 --retry-delay 1 --retry-connrefused"
END_S = 600


class Block(NamedTuple):
    """A fenced block."""

    language: str
    tags: frozenset[str]
    text: str

    def of(self, suite: str) -> bool:
        """Return whether it is for a suite, or for the page without one."""
        return not self.tags.intersection(SUITES) or suite in self.tags


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    found = (one.groups() for one in FENCE.finditer(page.read_text(encoding="utf-8")))
    return [Block(a[0] or a[3], frozenset((a[1] or a[4] or "").split()), a[2] or a[5] or "") for a in found]


def pages(suite: str = "") -> list[Path]:
    """Return the tutorials and how-to guides that have something to run in a suite."""
    all_pages = sorted(one for folder in ("tutorials", "howto") for one in (DOCS / folder).rglob("*.md"))
    elsewhere = ("gke", "own-consumer", "twenty-minutes")  # gke by no test, others by test_own_service and test_wheel
    followed = [one for one in all_pages if one.stem not in elsewhere]
    runs = {page: [block for block in blocks(page) if block.language in ("sh", "python", "toml")] for page in followed}
    return [
        page for page, found in runs.items() if any(one.of("") if not suite else suite in one.tags for one in found)
    ]


def clone(folder: Path) -> Path:
    """Copy the checkout, so that a page can write into it; its environment is a link."""
    left_out = shutil.ignore_patterns(".git", ".venv", "out", "*_cache", ".hypothesis")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


class Reader:
    """A user who follows `page` in `folder`; `stands_for` replaces words of it."""

    def __init__(self, page: Path, folder: Path, kafka: str, suite: str = "", **stands_for: str) -> None:
        self.folder, self.kafka = folder, kafka
        self.blocks = [block for block in blocks(page) if block.of(suite)]
        self.ports = {port: str(free_port()) for port in PORT.findall(page.read_text("utf-8")) if port != "9092"}
        self._stands_for = dict.fromkeys(KAFKA, kafka) | stands_for
        tools = folder / "bin"
        tools.mkdir()
        for name, arguments in (("tailpack", "-m tailpack "), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments}"$@"\n')
            (tools / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
        self.environ = kept | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}"}
        self.started: list[subprocess.Popen[str]] = []

    def here(self, text: str) -> str:
        """Return a text of the page with what stands for its words."""
        for word, instead in self._stands_for.items():
            text = text.replace(word, instead)
        return re.sub(r"\b\d{4,5}\b", lambda one: self.ports.get(one[0], one[0]), text)

    def write(self, block: Block) -> bool:
        """Write the block's file. Return whether it is one."""
        if named := FILE.match(block.text):
            (self.folder / named[1]).parent.mkdir(exist_ok=True, parents=True)
            with (self.folder / named[1]).open("a" if named[2] else "w", encoding="utf-8") as file:
                file.write(self.here(block.text[named.end() :]))
        return named is not None

    def commands(self) -> list[str]:
        """Return the shell blocks."""
        return [self.here(block.text).strip() for block in self.blocks if block.language == "sh"]

    def start(self, line: str) -> "subprocess.Popen[str]":
        """Type lines; their output is read at the end."""
        pipe = subprocess.PIPE
        words = ["bash", "-eo", "pipefail", "-c", line]
        process = subprocess.Popen(
            words, stdout=pipe, stderr=pipe, cwd=self.folder, env=self.environ, text=True, start_new_session=True
        )
        self.started.append(process)
        return process

    def type(self, line: str, status: int | None = None) -> "subprocess.CompletedProcess[str]":
        """Type lines and wait for their end. status: that they must have."""
        process = self.start(line)
        output, errors = process.communicate(timeout=END_S)
        assert status in (None, process.returncode), f"{line}\n{process.returncode}\n{output}\n{errors}"
        return subprocess.CompletedProcess(line, process.returncode, output, errors)

    def follow(self, settle_s: float = 5.0) -> None:
        """Follow the whole page. settle_s: time that programs in the background run at least after its last block."""
        in_background = []
        for block in self.blocks:
            if self.write(block):
                continue
            status = int(next((tag.partition("=")[2] for tag in block.tags if "=" in tag), 0))
            match block.language:
                case "sh" if "background" in block.tags:
                    in_background.append(self.start(self.here(block.text).strip()))
                case "sh":
                    self.type(self.here(block.text).strip().replace("curl ", f"{CURL} "), status)
                case "python":
                    (self.folder / "block.py").write_text(self.here(block.text), encoding="utf-8")
                    self.type("python block.py", status)
                case "toml":
                    known = {name for _, name in places()} | {*SECTIONS, OPTIONS, STAGES, *RAILS}
                    assert tomllib.loads(block.text), block
                    assert {part for name in KEY.findall(block.text) for part in name.split(".")} <= known, block
        time.sleep(settle_s if in_background else 0)
        for process in reversed(in_background):
            assert process.poll() is None, process.communicate()
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            output = process.communicate(timeout=60)
            assert process.returncode in (0, INTERRUPTED), output

    def close(self) -> None:
        """End every started process."""
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def follow(page: Path, folder: Path, kafka: str, suite: str = "", **stands_for: str) -> None:
    """Follow a page in a copy of the checkout."""
    reader = Reader(page, clone(folder / "clone"), kafka, suite, **stands_for)
    try:
        reader.follow()
    finally:
        reader.close()


def main() -> None:
    """Follow one page."""
    parser = argparse.ArgumentParser(description="Follow a page of the documentation.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--kafka", default="127.0.0.1:9092", help="address of a Kafka that the page may use")
    parser.add_argument("--suite", default="", choices=["", *SUITES], help="follow the blocks for this suite too")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        follow(given.page, Path(folder), given.kafka, given.suite)


if __name__ == "__main__":
    main()
