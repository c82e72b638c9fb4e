"""Settings of the Order service."""

from typing import Annotated, Literal

import msgspec

from contracts.events import DEMO_TOKEN_KEY
from services.common.settings import ServiceSettings


class OrderSettings(ServiceSettings, frozen=True, kw_only=True):
    """Environment: TAILPACK_GROUPING, TAILPACK_PAYMENT_PARTITIONS and those that every service has."""

    payment_partitions: Annotated[int, msgspec.Meta(ge=1)]
    """Partitions of payments.requested."""
    grouping: Literal["key", "explicit"] = "key"
    """key: by the customer's hash. explicit: by the header `partition`, by the customer's hash without one."""
    card_token_key: str = DEMO_TOKEN_KEY
    """Secret of the keyed hash that turns card numbers into tokens."""
    follow_shipments: bool = False
    """Whether the status table also reads shipments.scheduled, so that an order shows as shipped before its customer
    was notified. Each topic followed costs 8 % of a core at 120 orders/s, and the notification comes some 10 ms after
    the shipment and tells of it."""
