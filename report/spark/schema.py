"""How Spark reads the records of `contracts`: the fields that a report needs, by their names there."""

from typing import Final

from pyspark.sql import types as t

from contracts.topics import Topic

TIMES: Final = ("intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us")

TIMELINE: Final = t.StructType(
    [t.StructField(name, t.LongType()) for name in TIMES]
    + [
        t.StructField("partition", t.IntegerType()),
        t.StructField("offset", t.LongType()),
        t.StructField("replica", t.StringType()),
        t.StructField("epoch", t.LongType()),
    ]
)

SAYS: Final = (
    "customer", "merchant", "country", "currency", "amount_minor", "card_token", "payment_id", "decline_reason",
    "risk_score", "shipment_id", "parcel", "carrier", "promised_on", "notification_id", "text",
)  # fmt: skip
"""Fields that, with `accepted`, tell whether two records of one event say the same. The timeline may differ."""

VALUE: Final = t.StructType(
    [
        t.StructField("v", t.IntegerType()),
        t.StructField("order_id", t.StringType()),
        t.StructField("accepted", t.BooleanType()),
        *(t.StructField(name, t.StringType()) for name in SAYS),
        t.StructField("timeline", TIMELINE),
    ]
)

LETTER: Final = t.StructType(
    [
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("offset", t.LongType()),
    ]
)

JOURNAL: Final = t.StructType(
    [
        t.StructField("kind", t.StringType()),
        t.StructField("at_us", t.LongType()),
        t.StructField("tick", t.LongType()),
        t.StructField("action", t.StringType()),
        t.StructField("reason", t.StringType()),
        t.StructField("ready_replicas", t.IntegerType()),
        t.StructField("requested_replicas", t.IntegerType()),
        t.StructField("epoch", t.LongType()),
        t.StructField("moved", t.IntegerType()),
        t.StructField("replica", t.StringType()),
        t.StructField("change", t.StringType()),
    ]
)

COLUMN_OF: Final[dict[Topic, str]] = {
    Topic.ORDERS_PLACED: "placed",
    Topic.PAYMENTS_REQUESTED: "requested",
    Topic.PAYMENTS_SETTLED: "settled",
    Topic.SHIPMENTS_SCHEDULED: "shipped",
    Topic.NOTIFICATIONS_SENT: "notified",
}
"""Topic → prefix of its columns in events.parquet: `<prefix>_records`, `<prefix>_differ`."""

EVENT: Final = t.StructType(
    [
        t.StructField("event_id", t.StringType()),
        *(t.StructField(name, t.LongType()) for name in TIMES),
        *TIMELINE.fields[len(TIMES) :],
        t.StructField("accepted", t.BooleanType()),
        t.StructField("dead_letters", t.LongType()),
        *(
            t.StructField(f"{prefix}_{what}", kind)
            for prefix in COLUMN_OF.values()
            for what, kind in (("records", t.LongType()), ("differ", t.BooleanType()))
        ),
    ]
)
"""One event: what every file of events must have. Files made here also have `customer_hash` (long)."""
