"""What services touch of aiokafka beyond its documentation: all there, as listed, and nothing else."""

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.sender import Sender, TxnOffsetCommitHandler

import services.consumer
from services.common import header_names
from services.consumer import private_surface as surface

EXTENDED = (AIOKafkaClient, GroupCoordinator, Sender, TxnOffsetCommitHandler)
FILES = [*sorted(Path(services.consumer.__file__).parent.glob("*.py")), Path(header_names.__file__)]
DOCUMENTED = {"aiokafka", "aiokafka.abc", "aiokafka.errors", "aiokafka.helpers", "aiokafka.structs"}
METHODS = (*surface.OVERRIDDEN, *surface.CALLED)
LISTED = {each.name for each in (*METHODS, *surface.ATTRIBUTES)}


def found(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


@functools.cache
def source_of(owner: type) -> str:
    """Of the class and of its bases in aiokafka."""
    return "".join(inspect.getsource(each) for each in owner.__mro__ if each.__module__.startswith("aiokafka"))


def called(each: surface.Method | surface.Attribute) -> str:
    return f"{each.owner.rsplit('.', 1)[1]}.{each.name}"


def test_the_series_is_the_one_that_was_read():
    assert aiokafka.__version__.startswith(surface.VERSION)


@pytest.mark.parametrize("method", METHODS, ids=called)
def test_a_method_has_the_parameters_we_rely_on(method):
    assert hasattr(found(method.owner), method.name), method.why
    names = [name for name in inspect.signature(getattr(found(method.owner), method.name)).parameters if name != "self"]
    assert names == method.parameters.split(), method.why


@pytest.mark.parametrize("attribute", surface.ATTRIBUTES, ids=called)
def test_an_attribute_is_there(attribute):
    owner = found(attribute.owner)
    assert f"self.{attribute.name} = " in source_of(owner) or isinstance(
        getattr(owner, attribute.name, None), property
    ), attribute.why


@pytest.mark.parametrize("one", surface.IMPORTS, ids=lambda one: f"{one.module}.{one.name}")
def test_an_import_is_there(one):
    assert hasattr(importlib.import_module(one.module), one.name), one.why


def test_nothing_is_listed_twice():
    everything = [(each.owner, each.name) for each in (*METHODS, *surface.ATTRIBUTES)]
    assert len(everything) == len(set(everything))


# The list cannot go stale: what the package's own source says.


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in FILES:
        yield file.name, ast.parse(file.read_text())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def foreign_attributes(tree: ast.Module) -> set[str]:
    """Private attributes that the module uses, or overrides, and that are not its own classes'."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    declared = set().union(*map(declared_in, classes))
    overridden = {name for each in classes for name in declared_in(each) if any(name in of for of in extended(each))}
    plain = {node for each in classes if not extended(each) for node in ast.walk(each)}
    used = set(overridden)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            on_self = isinstance(node.value, ast.Name) and node.value.id == "self" and node in plain
            if node.attr not in declared - overridden and not (on_self and node.attr in our_own()):
                used.add(node.attr)
    return used


@functools.cache
def our_own() -> set[str]:
    """Private attributes of the package's classes that extend none of aiokafka's: subclasses may use them."""
    classes = [node for _, tree in trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return set().union(*(assigned_in(each) | declared_in(each) for each in classes if not extended(each)))


def extended(node: ast.ClassDef) -> list[set[str]]:
    """Return the private names of each class of aiokafka that this one extends."""
    bases = [
        each for each in EXTENDED for base in node.bases if isinstance(base, ast.Name) and base.id == each.__name__
    ]
    return [{name for name in re.findall(r"\b_\w+", source_of(each)) if is_private(name)} for each in bases]


def declared_in(node: ast.ClassDef) -> set[str]:
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return {name for name in names | {each.id for each in fields if isinstance(each, ast.Name)} if is_private(name)}


def assigned_in(node: ast.ClassDef) -> set[str]:
    stores = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return {each.attr for each in stores if isinstance(each.value, ast.Name) and each.value.id == "self"}


def test_no_private_attribute_is_used_that_is_not_listed():
    unlisted = {(name, each) for name, tree in trees() for each in foreign_attributes(tree) - LISTED}
    assert unlisted == set()


def test_no_private_attribute_is_listed_that_is_not_used():
    used = set().union(*(foreign_attributes(tree) for _, tree in trees()))
    assert {name for name in LISTED if is_private(name)} - used == set()


def test_every_public_name_that_is_listed_is_used():
    text = " ".join(file.read_text() for file in FILES if file.name != "private_surface.py")
    assert {name for name in LISTED if not name.startswith("_") and f".{name}" not in text} <= {
        each.name for each in surface.OVERRIDDEN
    }


def test_the_modules_that_are_imported_from_are_documented_or_listed():
    imported = {
        (node.module, alias.name)
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "aiokafka"
        for alias in node.names
        if node.module not in DOCUMENTED
    }
    assert imported == {(each.module, each.name) for each in surface.IMPORTS}


def test_a_use_that_is_not_listed_would_be_noticed():
    ours = """
class Mine(GroupCoordinator):
    _own: int
    def _send_req(self):
        self._own = fetcher._in_flight
        self._members = 1
class Other:
    def __init__(self, consumer):
        self._coordinator = consumer._coordinator
"""
    assert foreign_attributes(ast.parse(ours)) == {"_send_req", "_in_flight", "_members", "_coordinator"}
