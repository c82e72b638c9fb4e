"""Simulates a consumer group. It is run by the same controller as a live group, and every single event is served."""
