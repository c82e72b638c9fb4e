"""docs/contracts.md says what the code says: topics, groups, variables, properties, and every field with its type."""

import re
from dataclasses import fields
from enum import EnumMeta
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest

from contracts import events, journal, plan, progress
from contracts.connection import Connection, Security
from contracts.topics import Group, Topic, partitions_of

TEXT = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text(encoding="utf-8")
RECORDS: dict[str, type[msgspec.Struct]] = {
    name: kind
    for module in (events, journal, plan, progress)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not name.startswith("_")
}
SIMPLE = {int: "integer", float: "number", str: "text", bool: "true or false"}


def rows_of(text: str, first_column: str) -> list[list[str]]:
    """Return the cells of the table whose header begins with `first_column`, without header and backticks."""
    found = re.search(rf"^\| {first_column} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found, f"no table that begins with {first_column}"
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


def section(heading: str) -> str:
    """Return what stands below "### heading", up to the next heading."""
    found = re.search(rf"^### {heading}\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"no section {heading}"
    return found[1]


def spelled(of: Any, *, may_be_absent: bool = False) -> str:
    """Return a field's type in the page's words."""
    arguments = get_args(of)
    if NoneType in arguments:
        (other,) = [one for one in arguments if one is not NoneType]
        return f"{spelled(other)} or {'absent' if may_be_absent else 'null'}"
    if get_origin(of) is tuple:
        return f"list of {spelled(arguments[0])}"
    if get_origin(of) is dict:
        return f"map of {spelled(arguments[0])} to {spelled(arguments[1])}"
    if get_origin(of) is Annotated:
        return spelled(arguments[0])
    if isinstance(of, EnumMeta):
        return "text"
    return SIMPLE.get(of) or str(of.__name__)


def fields_of(kind: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Return (name, type in the page's words) of every field as it stands in JSON."""
    tag = [(kind.__struct_config__.tag_field, "text")] if kind.__struct_config__.tag else []
    absent = kind.__struct_config__.omit_defaults
    return tag + [
        (field.encode_name, spelled(field.type, may_be_absent=absent)) for field in msgspec.structs.fields(kind)
    ]


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_is_there_with_its_type_and_a_meaning(name: str) -> None:
    rows = rows_of(section(name), "field")
    assert [(row[0], row[1]) for row in rows] == fields_of(RECORDS[name])
    assert all(row[3] for row in rows)


def test_no_record_is_described_that_does_not_exist() -> None:
    headings = re.findall(r"^### (\w+)\n", TEXT, re.MULTILINE)
    assert {name for name in headings if "| field |" in section(name)} == set(RECORDS)


def test_topics_with_their_partitions_and_records() -> None:
    rows = rows_of(TEXT, "topic")
    assert [row[0] for row in rows] == [topic.value for topic in Topic]
    for name, values, _, partitions, *_ in rows:
        assert partitions.replace("n", "9") == str(partitions_of(Topic(name), 9))
        assert all(value in RECORDS for value in values.split(", "))


def test_groups_headers_variables_and_properties() -> None:
    assert [row[0] for row in rows_of(TEXT, "group")] == [group.value for group in Group]
    headers = [events.INTENDED_AT_HEADER, events.PLACED_AT_HEADER, events.PARTITION_HEADER]
    assert [row[0] for row in rows_of(TEXT, "header")] == headers
    variables = [f"TAILPACK_{field.name.upper()}" for field in fields(Connection)]
    assert [row[0] for row in rows_of(TEXT, "variable")] == variables
    properties = [field.name.replace("_", ".") for field in fields(Security)]
    assert [row[0] for row in rows_of(TEXT, "property")] == properties
