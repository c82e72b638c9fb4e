"""python -m services.order: run the Order service with settings from the environment."""

import os

from services.common.process import main
from services.order.app import OrderSettings, build

if __name__ == "__main__":
    main("order", os.environ, OrderSettings, build)
