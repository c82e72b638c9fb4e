"""Partitions with loads into replicas with capacities."""
