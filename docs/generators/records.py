"""reference/records.md and report-fields.md, from the types of the records and of result.json."""

from collections.abc import Iterator
from itertools import groupby
from types import ModuleType
from typing import Any, Final

import msgspec

from contracts import events, holds, journal, plan, progress, topics
from generators import BREAK, bullets, data, head, joined, table, wrapped
from report.result import Result
from tailpack.cli.catalogue import sentences


def records_page() -> str:
    """Return the page of topics and records. Raises ValueError where a field has no meaning, or a meaning no field."""
    known = data("reference/records.toml")
    title, topics_head, in_topics, headers, common = (
        known.pop(key) for key in ("head", "topics_head", "topics", "headers", "shared")
    )
    if list(in_topics) != list(topics.Topic) or list(headers) != [
        events.INTENDED_AT_HEADER, events.PLACED_AT_HEADER, events.PARTITION_HEADER,
    ]:  # fmt: skip
        raise ValueError("records.toml: topics and headers must be those of contracts/, in their order")
    rows = []
    for one, (record, key, *written_and_read) in in_topics.items():
        partitions = str(topics.partitions_of(topics.Topic(one), 0)).replace("0", "n")
        rows.append((f"`{one}`", record, key, partitions, *written_and_read))
    groups = ", ".join(f"`{one}`" for one in topics.Group)
    parts = [
        *(title.strip(), "## Topics", topics_head.strip()),
        table(("topic", "record", "key", "partitions", "written by", "read by"), rows),
        f"The consumer groups are {groups}, also with the namespace before them.",
        "## Headers of orders.placed",
        table(("header", "meaning"), [(f"`{name}`", meaning) for name, meaning in headers.items()]),
    ]
    for module in (events, plan, progress, journal, holds):
        parts.append(f"## {module.__name__.rpartition('.')[2].capitalize()}")
        for name, record in _structs(module).items():
            parts += [f"### {name}", *_record(record, known.pop(name, {}), common)]
    if known:
        raise ValueError(f"records.toml describes unknown records: {', '.join(known)}")
    return joined(parts)


def _structs(module: ModuleType) -> dict[str, type[msgspec.Struct]]:
    return {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and not name.startswith("_")
    }


def _record(record: type[msgspec.Struct], known: dict[str, str], common: dict[str, str]) -> Iterator[str]:
    """Yield the parts of a record's section: what it is, and the table of its fields."""
    name, like = record.__name__, known.pop("like", "")
    yield wrapped(known.pop("about"))
    if like:
        yield f"The other fields are those of [{like}](#{like.lower()})."
    rows = []
    for field, kind in _fields(record).items():
        meaning = known.pop(field, "") or ("" if like else common.get(field, ""))
        if not meaning and not like:
            raise ValueError(f"records.toml has no meaning of {name}.{field}")
        rows += [(f"`{field}`", kind, meaning)] if meaning else []
    if known:
        raise ValueError(f"records.toml, {name}: there is no field {', '.join(known)}")
    yield table(("field", "type", "meaning"), rows)


SIMPLE: Final = {
    "IntType": "integer",
    "FloatType": "number",
    "StrType": "text",
    "EnumType": "text",
    "BoolType": "boolean",
}
"""Kind of a type, as msgspec names it → its name in JSON."""


def _fields(of: type[msgspec.Struct]) -> dict[str, str]:
    """Return name → type of every field as it is in JSON, without `v`."""
    config, info = of.__struct_config__, msgspec.inspect.type_info(of)
    tag = {config.tag_field: "text"} if config.tag_field else {}
    none = "absent" if config.omit_defaults else "null"
    return tag | {field.encode_name: _type(field.type, none) for field in info.fields if field.name != "v"}  # type: ignore[attr-defined]


def _type(of: Any, none: str) -> str:
    match type(of).__name__:
        case "UnionType":
            return " or ".join(none if type(one).__name__ == "NoneType" else _type(one, none) for one in of.types)
        case "VarTupleType":
            return f"list of {_type(of.item_type, none)}"
        case "DictType":
            return f"map of {_type(of.key_type, none)} to {_type(of.value_type, none)}"
        case "StructType":
            return f"[{of.cls.__name__}](#{of.cls.__name__.lower()})"
        case name:
            return SIMPLE[name]


def report_fields_page() -> str:
    """Return the page of the fields of result.json, from the type of the whole to the types inside it."""
    parts = [head("report-fields")]
    found: list[type[msgspec.Struct]] = [Result]
    for record in found:
        info: Any = msgspec.inspect.type_info(record)
        inside = dict.fromkeys(one for field in info.fields for one in _inside(field.type))
        found += [one for one in inside if one not in found and one.__module__ == Result.__module__]
        texts, types = sentences(record), _fields(record)
        parts += [f"## {record.__name__}", wrapped((record.__doc__ or "").partition(BREAK)[0])]
        listed = [one for one in info.fields if one.name != "v"]
        rows = [(one.encode_name, *_short(types[one.encode_name]), texts.get(one.name, "")) for one in listed]
        lines = []
        for (kind, meaning), same in groupby(rows, lambda row: row[2:]):
            names = ", ".join(f"`{name}`{mark}" for name, mark, *_ in same)
            lines.append(": ".join(filter(None, [names + (f" ({kind})" if kind else ""), meaning])))
        parts.append(bullets(lines))
    return joined(parts).replace("(#planalternative)", "(records.md#planalternative)")


def _short(kind: str) -> tuple[str, str]:
    """Return the mark of a type that can be null, and its name; none for numbers."""
    some = kind.removesuffix(" or null")
    return "" if some == kind else "?", "" if some in ("integer", "number") else some


def _inside(of: Any) -> list[type]:
    match type(of).__name__:
        case "StructType":
            return [of.cls]
        case "UnionType":
            return [one for each in of.types for one in _inside(each)]
        case "VarTupleType":
            return _inside(of.item_type)
        case _:
            return []
