"""Studies that reproduce published tables. Only their commands import them."""
