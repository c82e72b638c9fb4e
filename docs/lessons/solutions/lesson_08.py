"""A solution of lesson 8: How a p99 can mislead."""

from collections.abc import Callable


def closed_loop(intended_s: list[float], serve: Callable[[float], float]) -> list[tuple[float, float]]:
    sent, free_s = [], 0.0
    for at_s in intended_s:
        if at_s >= free_s:  # while it waits for an answer, a closed loop sends nothing
            free_s = serve(at_s)
            sent.append((at_s, free_s))
    return sent
