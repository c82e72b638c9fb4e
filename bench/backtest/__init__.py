"""Simulations of a user's own trace, which show how other scalers would have served it."""
