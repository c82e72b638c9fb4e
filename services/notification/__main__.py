"""python -m services.notification: run the Notification service with settings from the environment."""

import os

from services.common.faust_app import ServiceSettings
from services.common.process import main
from services.notification.app import build

if __name__ == "__main__":
    main("notification", os.environ, ServiceSettings, build)
