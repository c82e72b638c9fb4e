"""Studies that repeat published tables. Nothing imports them but their commands."""
