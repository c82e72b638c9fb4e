"""python -m services.shipment: run the Shipment service with settings from the environment."""

import os

from services.common.faust_app import ServiceSettings
from services.common.process import main
from services.shipment.app import build

if __name__ == "__main__":
    main("shipment", os.environ, ServiceSettings, build)
