"""The two images: their size, removed files and compiled code."""

import subprocess

import pytest
from compose_file import ROOT, services

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

MOST_BYTES = 400_000_000
REMOVED = """
import importlib.util, pathlib, shutil, sysconfig
modules = "ensurepip kubernetes.aio lib2to3 numpy.distutils numpy.f2py pip setuptools tzdata pyspark locust".split()
print([one for one in modules if importlib.util.find_spec(one)])
print([one for one in "apt apt-get dpkg-deb.pl gcc java perl pip strip".split() if shutil.which(one)])
packages = pathlib.Path(sysconfig.get_path("purelib"))
files = [file for one in packages.iterdir() if one.name not in OURS for file in one.rglob("*")]
print([str(one) for one in files if one.suffix in {".py", ".pyi"} or one.name == "tests"])
print([one for one in ("/usr/share/doc", "/usr/share/man", "/usr/share/locale") if pathlib.Path(one).exists()])
"""


def inside(image: str, code: str, *options: str) -> list[str]:
    """Return the lines that a program prints in a container of the image."""
    command = ["docker", "run", "--rm", *options, image, "python", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_services_and_autoscaler_fit_into_400_megabytes(image: str) -> None:
    asked = ["docker", "image", "inspect", "--format", "{{.Size}}", image]
    assert int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout) <= MOST_BYTES


def test_removed_files_are_not_in_the_image(image: str) -> None:
    ours = [path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()]
    assert inside(image, f"OURS = {ours}\n{REMOVED}") == ["[]"] * 4


@pytest.mark.parametrize("service", ["autoscaler", "report"])
def test_policies_use_compiled_code_on_a_read_only_file_system(images: None, service: str) -> None:
    image = services()[service]["image"]
    count = (
        "import sys; from autoscaler.policies.tail_aware import queues; from autoscaler.jit import _Compiled\n"
        "from tailpack.__main__ import main; sys.argv = 'tailpack simulate demo --json'.split()\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "made = [one._machine_code.stats for one in vars(queues).values() if isinstance(one, _Compiled)]\n"
        "print(sum(sum(one.cache_hits.values()) for one in made), sum(sum(one.cache_misses.values()) for one in made))"
    )
    hits, misses = map(int, inside(image, count, "--read-only")[-1].split())
    assert hits > 0
    assert misses == 0


@pytest.mark.parametrize("service", ["order", "report"])
def test_an_image_runs_without_root(images: None, service: str) -> None:
    assert int(inside(services()[service]["image"], "import os; print(os.getuid())")[0]) > 0
