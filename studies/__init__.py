"""Studies that reproduce published tables. Only `tailpack dev paper` imports them."""
