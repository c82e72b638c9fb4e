"""The cost of a partition's change of owner: `group` serves a load, `steps` act on it, `figures` analyse it."""
