"""Tests of policies that packages offer by entry points, including broken ones."""

import re
import sys

import pytest

from autoscaler.policies.registry import make_policy
from bench.jobs import Job, policy_version

MODULE = """
from autoscaler.policies.registry import POLICIES, PolicyFactory
from contracts.settings import Settings

MODULE = __name__

class Good:
    name = "good"
    decide = print

def fails(settings, options):
    raise RuntimeError("no\\nlicence")

GOOD = PolicyFactory("does well", lambda *_: Good(), Settings)
FAILS = PolicyFactory("fails", fails, Settings)
IDLE = PolicyFactory("decides nothing", lambda *_: object(), Settings)
OTHER = PolicyFactory("bears another name", lambda *_: Good(), Settings)
"""
OFFERS = {
    "good": "stranger:GOOD",
    "fails": "stranger:FAILS",
    "idle": "stranger:IDLE",
    "other": "stranger:OTHER",
    "absent": "no_such_module_here:POLICY",
    "lacking": "stranger:NOTHING",
    "plain": "stranger:MODULE",
    "linear": "stranger:GOOD",
    "twice": "stranger:GOOD",
}


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text(MODULE)
    for package, offers in (("stranger", OFFERS), ("second", {"twice": "stranger:GOOD"})):
        folder = tmp_path / f"{package}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        lines = [f"{name} = {value}" for name, value in offers.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[tailpack.policies]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stranger", raising=False)


def error_of(name):
    with pytest.raises(ValueError, match="policy") as raised:
        make_policy(name)
    return str(raised.value)


def test_the_key_of_a_cached_result_depends_on_the_code_of_the_package(tmp_path):
    job = Job(scenario="smoke", policy="good")
    first = job.key()
    assert job.key() == first
    (tmp_path / "stranger.py").write_text(MODULE + "\n# another version\n")
    assert job.key() != first
    assert policy_version("linear") == policy_version("absent") == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("lacking", "cannot be imported: AttributeError: module 'stranger' has no attribute 'NOTHING'"),
        ("plain", "must be a PolicyFactory or a class with `decide`, not str"),
        ("fails", "cannot be created: RuntimeError: no licence"),
        ("idle", "must make an object with a method `decide` and the `name` 'idle', not object"),
        ("other", "must make an object with a method `decide` and the `name` 'other', not Good"),
    ],
)
def test_an_unusable_policy_is_named_with_its_package(name, why):
    of = f"policy {name!r} of package stranger ({OFFERS[name]}) "
    assert error_of(name) == f"{of}{why}"


def test_a_name_that_two_packages_offer_is_an_error():
    of = r"package (stranger|second) \(stranger:GOOD\)"
    assert re.fullmatch(f"policy 'twice' is offered by {of} and {of}; uninstall all but one", error_of("twice"))
