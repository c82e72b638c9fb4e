"""python -m autoscaler.live: decide once per interval how many replicas run and who owns which partition.

SIGTERM ends the controller alone: its replicas serve on by the last plan, and the next controller adopts them.
SIGINT (Ctrl-C) stops the replicas, too. python -m autoscaler.live --stop-replicas stops those that a controller left.
"""

import argparse
import sys
from pathlib import Path

from autoscaler.live.start import autoscale


def main() -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m autoscaler.live", description="Settings come from TAILPACK_….")
    parser.add_argument("configs", nargs="*", type=Path, help="TOML files; variables go first; several: a chain")
    parser.add_argument("--stop-replicas", action="store_true", help="stop replicas that were left, and end")
    asked = parser.parse_args()
    return autoscale(*asked.configs, only_stop=asked.stop_replicas)


if __name__ == "__main__":
    sys.exit(main())
