"""python -m services.order: run the Order service with settings from the environment."""

import os

from services.common.run import main
from services.order.app import build
from services.order.settings import OrderSettings

if __name__ == "__main__":
    main("order", os.environ, OrderSettings, build)
