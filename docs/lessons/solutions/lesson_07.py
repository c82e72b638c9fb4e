"""A solution of lesson 7: Starts take time."""


def crossing_s(rows: list[tuple[float, str, float, float]]) -> float | None:
    found = None
    for startup_s in sorted({row[0] for row in rows}, reverse=True):  # from the longest, as long as it holds
        meet = [row for row in rows if row[0] == startup_s and row[2] >= 0.999]
        cheapest = min(meet, key=lambda row: row[3])
        if not cheapest[1].startswith("static-"):
            break
        found = startup_s
    return found
