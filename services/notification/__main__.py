"""python -m services.notification: run the Notification service with settings from the environment."""

import os

from services.common.run import main
from services.common.settings import ServiceSettings
from services.notification.app import build

if __name__ == "__main__":
    main("notification", os.environ, ServiceSettings, build)
