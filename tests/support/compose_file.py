"""Read docker-compose.yml with merged aliases and the defaults of variables."""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
TLS = ROOT / "infra" / "docker" / "tls.yml"
"""Compose file that adds TLS."""


def compose(file: Path = FILE) -> dict[str, Any]:
    """Return the content of a Compose file."""
    text = file.read_text(encoding="utf-8")
    return yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))


def services() -> dict[str, dict[str, Any]]:
    """Return service → its settings."""
    return compose()["services"]


def command_of(service: str) -> list[str]:
    """Return the words that `service` runs."""
    command = services()[service]["command"]
    return shlex.split(command) if isinstance(command, str) else command
