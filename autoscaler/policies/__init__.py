"""Policies, which turn observations into decisions: one module for each family, and guards that can wrap any policy."""
