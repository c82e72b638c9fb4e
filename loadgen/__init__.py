"""Workloads, schedules of intended send times, and the drivers that send them."""
