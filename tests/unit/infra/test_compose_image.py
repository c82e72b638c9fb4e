"""The image: a wheel that holds everything, a small build context, a user without rights."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
from compose_file import ROOT, services

DOCKERFILE = (ROOT / "infra" / "docker" / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [name.rstrip("*") for name in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]
DATA = PYPROJECT["tool"]["setuptools"]["package-data"]["*"]


def instructions(name: str) -> list[str]:
    """Return the arguments of every `name` instruction of the Dockerfile, in order."""
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, flags=re.MULTILINE)


def copied_from_the_context() -> list[str]:
    copies = [words.split() for words in instructions("COPY") if not words.startswith("--from")]
    return [source for *sources, _ in copies for source in sources]


def test_base_images_are_pinned_to_a_version():
    bases = [words.split()[0] for words in instructions("FROM")]
    stages = {words.split()[2] for words in instructions("FROM") if " AS " in words}
    assert all(re.search(r":\d+\.\d+", base) for base in bases if base not in {*stages, "scratch"})
    assert any(base not in stages for base in bases)


@pytest.mark.parametrize("service", [name for name, one in services().items() if "build" in one])
def test_an_image_runs_as_a_user_without_rights(service):
    target = services()[service]["build"]["target"]
    stage = re.search(rf"^FROM \S+ AS {target}$(.+?)(?=^FROM |\Z)", DOCKERFILE, flags=re.MULTILINE | re.DOTALL)[1]
    variables = dict(re.findall(r"^ARG (\w+)=(\w+)$", stage, flags=re.MULTILINE))
    users = re.findall(r"^USER (\S+)$", stage, flags=re.MULTILINE)
    user = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], users[-1])
    assert user.isdecimal(), "Kubernetes can only tell from a number that it is not root"
    assert int(user) > 0


def test_the_processes_are_told_apart_by_their_command_alone():
    assert not instructions("ENTRYPOINT")


def test_all_our_packages_are_copied():
    assert set(PACKAGES) <= set(copied_from_the_context())


@pytest.mark.parametrize("source", copied_from_the_context())
def test_what_is_copied_is_in_the_build_context(source):
    assert (ROOT / source).exists()
    assert f"!{source}" in IGNORED


def test_the_build_context_is_closed_unless_opened():
    assert next(line for line in IGNORED if not line.startswith("#")) == "*"
    assert {line[1:] for line in IGNORED if line.startswith("!")} == set(copied_from_the_context())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> list[str]:
    """Names of the files in a wheel that is built as the Dockerfile builds it: from what it copies, nothing else."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in copied_from_the_context():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(out)], cwd=source, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl"))).namelist()


def test_the_wheel_holds_every_module_and_data_file(wheel):
    needed = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and _belongs(path)
    }
    assert needed - set(wheel) == set()
    assert "tailpack/local/locks/spark.lock" in needed
    assert "bench/scenarios/demo.toml" in needed


def test_the_wheel_brings_nothing_of_tests_and_tools(wheel):
    top = {Path(name).parts[0] for name in wheel}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def _belongs(path: Path) -> bool:
    return path.suffix == ".py" or any(fnmatch(path.name, pattern) for pattern in DATA)
