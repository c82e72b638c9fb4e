"""The messages of KEDA's externalscaler.proto, made as the module is imported.

From a description, where others check in generated code: that would tie the release of protobuf to that of a compiler.
What KEDA sends beyond this (the trigger's metadata) is passed over, as protobuf does with fields it does not know.
"""

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "externalscaler"
MESSAGES: Final[dict[str, dict[str, str | list[str]]]] = {
    "ScaledObjectRef": {"name": "string", "namespace": "string"},
    "IsActiveResponse": {"result": "bool"},
    "MetricSpec": {"metricName": "string", "targetSize": "int64", "targetSizeFloat": "double"},
    "GetMetricSpecResponse": {"metricSpecs": ["MetricSpec"]},
    "GetMetricsRequest": {"scaledObjectRef": "ScaledObjectRef", "metricName": "string"},
    "MetricValue": {"metricName": "string", "metricValue": "int64", "metricValueFloat": "double"},
    "GetMetricsResponse": {"metricValues": ["MetricValue"]},
}
"""Message → its fields, numbered from 1 in this order, with their types; a list: repeated. Names are KEDA's own."""


def _described() -> descriptor_pb2.FileDescriptorProto:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for number, (name, said) in enumerate(fields.items(), start=1):
            kind = said[0] if isinstance(said, list) else said
            one = described.field.add(name=name, number=number)
            one.label = field.LABEL_REPEATED if isinstance(said, list) else field.LABEL_OPTIONAL
            if kind in MESSAGES:
                one.type, one.type_name = field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                one.type = field.Type.Value(f"TYPE_{kind.upper()}")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_described())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


ScaledObjectRef: Final = _class("ScaledObjectRef")
IsActiveResponse: Final = _class("IsActiveResponse")
MetricSpec: Final = _class("MetricSpec")
GetMetricSpecResponse: Final = _class("GetMetricSpecResponse")
GetMetricsRequest: Final = _class("GetMetricsRequest")
MetricValue: Final = _class("MetricValue")
GetMetricsResponse: Final = _class("GetMetricsResponse")
