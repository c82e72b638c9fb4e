"""Workloads, schedules with the intended time of each event, and the drivers that send the events."""
