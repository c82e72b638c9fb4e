"""Make a trace of New York's taxi trip records, with PySpark; docs/howto/own-traffic.md shows how.

python docs/examples/taxi.py yellow_tripdata_2013-01.parquet --month 2013-01 --out trace.csv --by zone
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import numpy as np
from aiokafka.partitioner import murmur2
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

PICKED_UP = ("tpeppickupdatetime", "lpeppickupdatetime", "trippickupdatetime", "pickupdatetime")
DROPPED_OFF = ("tpepdropoffdatetime", "lpepdropoffdatetime", "tripdropoffdatetime", "dropoffdatetime")
ZONE = "pulocationid"
ZONES, UNKNOWN_ZONE = 265, 264  # the TLC numbers its zones from 1; 264 is "unknown"
SAME_TRIP = (ZONE, "dolocationid", "vendorid", "vendorname", "passengercount", "tripdistance", "pickuplongitude")
ZONE_SUFFIX = r"\s*(Z|UTC|[+-]\d\d:?\d\d)$"  # times are New York's clocks, as they are written
AMERICAN = "M/d/yyyy h:mm:ss a"  # how the city's portal writes times; the files have 2013-01-31 23:59:59
TRIMMED = {"header": "true", "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
SECOND_US = 1_000_000


def month_us(month: str) -> tuple[int, int]:
    """Return begin and end of a month YYYY-MM, in µs since 1970 on the clocks of New York (no time zone)."""
    year, number = map(int, month.split("-"))
    ends = (year, number, 1), (year + number // 12, number % 12 + 1, 1)
    begin, end = (int(datetime(*one, tzinfo=UTC).timestamp()) * SECOND_US for one in ends)
    return begin, end


def read_trips(spark: SparkSession, file: str, month: str) -> DataFrame:
    """Return times in µs, zone, trip (a hash), and broken: the first rule that the row breaks, or null."""
    raw = spark.read.options(**TRIMMED).csv(file) if ".csv" in file else spark.read.parquet(file)
    rows = raw.toDF(*("".join(letter for letter in name.lower() if letter.isalnum()) for name in raw.columns))

    def time_us(names: tuple[str, ...]) -> Column:
        column = f.col(next(name for name in names if name in rows.columns))
        if rows.select(column).dtypes[0][1] == "bigint":  # nanoseconds, as pandas writes times
            return f.floor(column / 1000)
        text = f.regexp_replace(column.cast("string"), ZONE_SUFFIX, "")
        whole = f.when(f.length(text) >= len("2013-01-01 00:00"), text)  # Spark would take "2013" for a time
        return f.unix_micros(f.coalesce(whole.try_cast("timestamp"), f.try_to_timestamp(text, f.lit(AMERICAN))))

    picked_up, dropped_off = time_us(PICKED_UP), time_us(DROPPED_OFF)
    zone = f.col(ZONE).try_cast("double").try_cast("int") if ZONE in rows.columns else f.lit(None)
    same = [f.coalesce(f.col(name).cast("string"), f.lit("")) for name in SAME_TRIP if name in rows.columns]
    begin_us, end_us = month_us(month)
    broken = (
        f.when(picked_up.isNull() | dropped_off.isNull(), "unreadable")
        .when((picked_up < begin_us) | (picked_up >= end_us), "other_month")
        .when(dropped_off < picked_up, "backwards")
    )
    return rows.select(
        picked_up.alias("picked_up_us"),
        dropped_off.alias("dropped_off_us"),
        f.when(zone.between(1, ZONES), zone).otherwise(UNKNOWN_ZONE).alias("zone"),
        f.xxhash64(picked_up, dropped_off, *same).alias("trip"),
        broken.alias("broken"),
    )


def count(trips: DataFrame, args: argparse.Namespace) -> tuple[np.ndarray, int]:
    """Return events, shape (seconds, partitions), and how many are later than the last second."""
    ends = {"both": ("picked_up_us", "dropped_off_us"), "pickup": ("picked_up_us",), "dropoff": ("dropped_off_us",)}
    begin_us, end_us = month_us(args.month)
    seconds = args.duration_s or -((begin_us - end_us) // (SECOND_US * args.speed))
    where = f.pmod(f.col("trip"), f.lit(args.partitions))
    if args.by == "zone":  # the partition that Kafka's clients choose for the key "zone 132"
        keys = (f"zone {number or UNKNOWN_ZONE}".encode() for number in range(ZONES + 1))
        where = f.get(f.lit([(murmur2(key) & 0x7FFFFFFF) % args.partitions for key in keys]), f.col("zone"))
    events = trips.select(f.explode(f.array(*ends[args.events])).alias("at_us"), where.alias("partition"))
    second = f.least(f.expr(f"(at_us - {begin_us}L) div {args.speed * SECOND_US}L"), f.lit(seconds))
    found = events.groupBy(second.alias("second"), "partition").count().toArrow()
    counts = np.zeros((seconds + 1, args.partitions), dtype=np.int64)
    counts[tuple(found.column(name).to_numpy() for name in ("second", "partition"))] = found.column("count").to_numpy()
    return counts[:-1], int(counts[-1].sum())


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Write the trace; return what became of every row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="trip records of one month: .parquet, .csv or .csv.gz")
    parser.add_argument("--month", required=True, help="YYYY-MM")
    parser.add_argument("--out", type=Path, required=True, help="CSV file for the trace")
    parser.add_argument("--speed", type=int, default=40, help="seconds of records in a second of the trace (40)")
    parser.add_argument("--partitions", type=int, default=1, help="columns of the trace (1)")
    parser.add_argument("--by", choices=("uniform", "zone"), default="uniform", help="how trips are partitioned")
    parser.add_argument("--events", choices=("both", "pickup", "dropoff"), default="both", help="ends that are events")
    parser.add_argument("--duration-s", type=int, help="length of the trace (the whole month)")
    args = parser.parse_args(arguments)
    builder = SparkSession.builder.config("spark.sql.legacy.parquet.nanosAsLong", "true")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    trips = reduce(DataFrame.unionByName, (read_trips(spark, file, args.month) for file in args.files))
    broken = {row["broken"]: row["count"] for row in trips.groupBy("broken").count().collect()}
    once = trips.where("broken is null").distinct().cache()
    counts, outside = count(once, args)
    dropped = {rule: broken.get(rule, 0) for rule in ("unreadable", "other_month", "backwards")}
    kept = once.count()
    names = [f"p{number}" for number in range(args.partitions)] if args.partitions > 1 else ["events"]
    lines = [",".join(map(str, (second, *row))) for second, row in enumerate(counts.tolist())]
    args.out.write_text("\n".join([",".join(["second", *names]), *lines, ""]), encoding="ascii")
    dropped["duplicate"] = broken.get(None, 0) - kept
    events = int(counts.sum())
    return {"rows": sum(broken.values()), "trips": kept, "dropped": dropped, "events": events, "outside": outside}


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(main())}\n")
