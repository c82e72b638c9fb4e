"""A consumer that knows nothing of us. Arguments: KEY=VALUE of librdkafka, and work.s.

LOG_FOLDER/NAME.PID, or the output, gets lines: time (µs), A(ssigned), R(evoked) or L(ost) with partitions, or E with an
event's place.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import confluent_kafka

NAME, FOLDER = os.environ["TAILPACK_REPLICA"], os.environ.get("LOG_FOLDER")
LOG = (Path(FOLDER) / f"{NAME}.{os.getpid()}").open("a", buffering=1) if FOLDER else sys.stdout
STOPPED: list[int] = []


def say(kind: str, *numbers: int) -> None:
    LOG.write(f"{time.time_ns() // 1000} {kind} {' '.join(map(str, numbers))}\n")


def places(kind: str) -> Any:
    return lambda _, found: say(kind, *(one.partition for one in found))


def librdkafka(topic: str, work_s: float, options: dict[str, str]) -> None:
    consumer = confluent_kafka.Consumer({"client.id": NAME, "auto.commit.interval.ms": "1000"} | options)
    consumer.subscribe([topic], on_assign=places("A"), on_revoke=places("R"), on_lost=places("L"))
    while not STOPPED:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            time.sleep(work_s)
            say("E", message.partition(), message.offset())
    consumer.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: STOPPED.append(number))
    given = dict(text.split("=", 1) for text in sys.argv[1:])
    librdkafka(given.pop("topic"), float(given.pop("work.s")), given)
