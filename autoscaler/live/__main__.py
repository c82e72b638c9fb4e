"""python -m autoscaler.live [CONFIG.toml …]: decide once per interval how many replicas run, and who owns what.

SIGTERM ends only the controller: its replicas keep serving by the last plan, and the next controller adopts them.
SIGINT (Ctrl-C) also stops the replicas. `tailpack autoscale` is the same with options, and imports the command line.
"""

import sys
from pathlib import Path

from autoscaler.live.start import autoscale

if __name__ == "__main__":
    sys.exit(autoscale(*map(Path, sys.argv[1:])))
