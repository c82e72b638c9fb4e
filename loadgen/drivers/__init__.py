"""The generator as a process. Only this package imports Locust and gevent, which patch the whole process."""
