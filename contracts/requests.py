"""Requests to brokers in versions that aiokafka does not have."""

from io import BytesIO
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import AbstractType, Int32, Schema


class TopicId(AbstractType[bytes]):  # type: ignore[misc]  # aiokafka ships no types
    """Id of a topic: a UUID, 16 bytes."""

    encode = staticmethod(bytes)

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        """Read an id."""
        return data.read(16)


def request_kind(key: int, version: int, request: Schema, *response: Any, is_flexible: bool = False) -> Any:
    """Return a kind of request. response: fields of the answer that follow the throttle time."""
    same: dict[str, Any] = {"API_KEY": key, "API_VERSION": version, "FLEXIBLE_VERSION": is_flexible}
    answer = type("Answer", (Response,), same | {"SCHEMA": Schema(("throttle_time_ms", Int32), *response)})
    return type("RequestOfVersion", (RequestStruct,), same | {"RESPONSE_TYPE": answer, "SCHEMA": request})


class VersionedRequest(Request[RequestStruct]):  # type: ignore[misc]
    """A request of one kind. values: fields in the order of its schema."""

    API_KEY = 0

    def __init__(self, kind: Any, *values: Any) -> None:
        self.API_KEY, self._CLASSES = kind.API_KEY, (kind,)
        self._values = values

    def prepare(self, versions: Any) -> Any:
        """Return the request to send to a broker. Raises IncompatibleBrokerVersion if the broker does not know it."""
        try:
            return super().prepare(versions)
        except NotImplementedError as unknown:
            raise IncompatibleBrokerVersion(str(unknown)) from unknown

    def build(self, request_struct_class: Any) -> Any:
        """Return the request to send."""
        return request_struct_class(*self._values)
