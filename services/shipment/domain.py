"""The parcel, its carrier and its delivery day. The same payment always gives the same shipment."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import msgspec

from contracts.events import PaymentSettled, ShipmentScheduled
from services.common.records import effect_id

STAGE: Final = "shipment"
CUT_OFF: Final = time(14, 0)  # UTC; later orders are dispatched on the next working day

CARRIERS: Final = {
    "AT": ("Österreichische Post", 2),
    "CH": ("Swiss Post", 3),
    "DE": ("DHL", 1),
    "ES": ("Correos", 3),
    "FR": ("La Poste", 2),
    "GB": ("Royal Mail", 4),
    "IT": ("Poste Italiane", 3),
    "NL": ("PostNL", 1),
    "SE": ("PostNord", 3),
    "US": ("UPS", 6),
}
"""Country → carrier and transit time in working days."""
DEFAULT_CARRIER: Final = ("DHL Express", 7)
SIZES: Final = ((5_000, "S"), (50_000, "M"), (500_000, "L"))
"""(Largest amount in minor units, size of the parcel). A larger amount gets XL."""
_SUNDAY: Final = 6


def parcel(shipment_id: str, amount_minor: int) -> str:
    """Return the parcel's label: size and number, such as M-1F3C9A20."""
    size = next((name for limit, name in SIZES if amount_minor <= limit), "XL")
    return f"{size}-{shipment_id[:8].upper()}"


def delivery_day(placed_us: int, working_days: int) -> date:
    """Return the day of dispatch (after the cut-off: the next day) plus `working_days`. Sundays are skipped."""
    placed = datetime.fromtimestamp(placed_us // 1_000_000, UTC)
    day = placed.date() + timedelta(days=1 if placed.time() >= CUT_OFF else 0)
    while day.weekday() == _SUNDAY:
        day += timedelta(days=1)
    for _ in range(working_days):
        day += timedelta(days=1)
        while day.weekday() == _SUNDAY:
            day += timedelta(days=1)
    return day


def schedule(payment: PaymentSettled, shipped_us: int) -> ShipmentScheduled | None:
    """Return the shipment for an accepted payment, None for a declined one."""
    if not payment.accepted:
        return None
    carrier, working_days = CARRIERS.get(payment.country, DEFAULT_CARRIER)
    shipment_id = effect_id(payment.order_id, STAGE)
    return ShipmentScheduled(
        shipment_id=shipment_id,
        order_id=payment.order_id,
        payment_id=payment.payment_id,
        customer=payment.customer,
        country=payment.country,
        parcel=parcel(shipment_id, payment.amount_minor),
        carrier=carrier,
        promised_on=delivery_day(payment.timeline.placed_us, working_days).isoformat(),
        timeline=msgspec.structs.replace(payment.timeline, shipped_us=shipped_us),
    )
