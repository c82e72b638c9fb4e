"""python -m autoscaler.live: decide once per interval how many replicas run and which one owns each partition.

SIGTERM ends only the controller: its replicas keep serving by the last plan, and the next controller adopts them.
SIGINT (Ctrl-C) also stops the replicas. The option --stop-replicas stops those that a controller left running.
"""

import argparse
import sys
from pathlib import Path

from autoscaler.live.start import autoscale


def main() -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m autoscaler.live", description="Environment: TAILPACK_….")
    parser.add_argument("configs", nargs="*", type=Path, help="TOML settings (TAILPACK_… overrides); several: a chain")
    parser.add_argument("--stop-replicas", action="store_true", help="stop the replicas left running, then exit")
    arguments = parser.parse_args()
    return autoscale(*arguments.configs, only_stop=arguments.stop_replicas)


if __name__ == "__main__":
    sys.exit(main())
