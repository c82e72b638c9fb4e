"""A replica without Kafka, for tests of launchers. It prints its report, and drains after SIGTERM.

REPLICA_ENDS: exit at once with this status. REPLICA_DRAINS_S: duration of the drain, s. After SIGUSR1 it exits
with status 3. After SIGUSR2 it uses more memory than a small container may have.
"""

import json
import os
import signal
import socket
import sys
import time


def crash() -> None:
    print("the disk is full", flush=True)  # noqa: T201
    os._exit(3)


def main() -> int:
    if "REPLICA_ENDS" in os.environ:
        print("a\nthe disk is full\n", flush=True)  # noqa: T201  its log
        return int(os.environ["REPLICA_ENDS"])
    received: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    signal.signal(signal.SIGUSR1, lambda *_: crash())
    signal.signal(signal.SIGUSR2, lambda *_: received.append(len(b"x" * 2**28)))
    report = {
        "replica": os.environ["TAILPACK_REPLICA"], "incarnation": str(time.time_ns()), "pid": os.getpid(),
        "host": socket.gethostname(), "member_id": "member", "generation": 1, "epoch": 1, "assigned_epoch": 1,
        "state": "member", "partitions": [], "positions": {}, "processed": 0, "busy_us": 0, "rebalances": 0, "at_us": 0,
    }  # fmt: skip
    print(json.dumps(report), flush=True)  # noqa: T201
    while not received:
        time.sleep(0.02)
    time.sleep(float(os.environ.get("REPLICA_DRAINS_S", "0.3")))
    print("gave everything back", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
