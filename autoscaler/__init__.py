"""Decides how many replicas run and which partition each one owns."""
