"""A solution of lesson 9: Order, keys and partitioners."""


def choose(need: str) -> str:
    return {"order": "kg", "memory": "sticky_split", "unequal": "cg"}[need]
