"""The image: a complete wheel from a small build context."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

import pytest
from compose_file import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DOCKERFILE = (ROOT / "infra" / "docker" / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [name.rstrip("*") for name in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]
LOCKED_EXTRAS = "load bench keda kubernetes traces"
DATA = PYPROJECT["tool"]["setuptools"]["package-data"]["*"]


def copied_from_the_context() -> list[str]:
    instructions = re.findall(r"^COPY (.+)$", DOCKERFILE, flags=re.MULTILINE)
    copies = [words.split() for words in instructions if not words.startswith("--from")]
    return [source for *sources, _ in copies for source in sources]


def test_the_build_context_excludes_all_files_that_are_not_listed():
    assert next(line for line in IGNORED if not line.startswith("#")) == "*"
    assert {line[1:] for line in IGNORED if line.startswith("!")} == set(copied_from_the_context())


def test_the_locks_have_every_required_package_with_its_hash():
    locks = [(ROOT / name).read_text(encoding="utf-8") for name in copied_from_the_context() if name.endswith(".lock")]
    pins = [re.fullmatch(r"(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}", line) for line in "".join(locks).splitlines()]
    locked = {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}
    assert len(locked) == len(pins) > 100
    extras = (PYPROJECT["project"]["optional-dependencies"][name] for name in LOCKED_EXTRAS.split())
    needed = map(Requirement, chain(PYPROJECT["project"]["dependencies"], *extras))
    assert [str(one) for one in needed if locked.get(canonicalize_name(one.name), "0") not in one.specifier] == [], (
        "make lock"
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> list[str]:
    """Names of the files in a wheel that is built only from the files that the Dockerfile copies."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in copied_from_the_context():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(out)], cwd=source, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl"))).namelist()


def test_the_wheel_contains_every_module_and_data_file(wheel):
    needed = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and _belongs(path)
    }
    assert needed - set(wheel) == set()
    assert "tailpack/local/locks/kafka.lock" in needed
    assert "bench/scenarios/live.toml" in needed


def _belongs(path: Path) -> bool:
    return path.suffix == ".py" or any(fnmatch(path.name, pattern) for pattern in DATA)
