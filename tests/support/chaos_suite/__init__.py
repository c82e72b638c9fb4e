"""Inject faults, chosen by a seed, into a running pipeline and its three brokers, then check all guarantees.

Run it with `make chaos`. The faults are in faults.py, the checks in checker.py, one schedule is suite.py.
"""
