"""Faults drawn from a seed, on a running pipeline and its three brokers; then a checker looks for what is wrong.

Run it with `make chaos`. The faults are in faults.py, the checks in checker.py, one schedule is suite.py.
"""
