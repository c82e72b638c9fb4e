"""What would other scalers have made of past traffic? Simulations of a user's own trace."""
