"""Packs partitions with loads into replicas with capacities."""
