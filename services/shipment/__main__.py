"""python -m services.shipment: run the Shipment service with settings from the environment."""

import os

from services.common.run import main
from services.common.settings import ServiceSettings
from services.shipment.app import build

if __name__ == "__main__":
    main("shipment", os.environ, ServiceSettings, build)
