"""Settings that every Faust service reads from its environment (TAILPACK_<FIELD>)."""

from typing import Annotated, TypeVar

import msgspec

S = TypeVar("S", bound="ServiceSettings")


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What all of them understand; a service with more to set extends it."""

    http_host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 inside a container."""
    http_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port of the HTTP interface; 0: none."""
    data_dir: str = ".tailpack/services"
    """Where Faust keeps its working folder. Nothing there needs to survive: state comes back from Kafka."""
    instance: str = "0"
    """Name of this copy of the service. A restart under the same name takes its group membership over at once."""
    commit_interval_s: Annotated[float, msgspec.Meta(gt=0)] = 0.5
    """A crash repeats what this long a time brought, and the repeats are dropped; each commit costs some ms of CPU."""
    broker_deadline_s: Annotated[float, msgspec.Meta(ge=0)] = 20.0
    """How long a start waits for the broker and for the run's topics."""
