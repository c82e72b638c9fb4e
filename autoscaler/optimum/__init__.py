"""Minimum cost of serving known events: schedules computed from the known future, and proven lower bounds."""
