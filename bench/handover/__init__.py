"""What a partition's change of owner costs: `group` serves a load, `steps` act on it, `figures` analyse it."""
