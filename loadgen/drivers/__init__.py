"""The generator as a process: the only place that knows Locust and gevent.

Importing locust patches the whole process.
"""
