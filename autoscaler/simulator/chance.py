"""Seeded chance of the world around the engine: each cause has its own stream, so that none disturbs another."""

from enum import IntEnum

import numpy as np


class Cause(IntEnum):
    """What chance decides. The numbers are far from those by which an engine seeds its blocks of events."""

    START_UP = 0x7A110001
    HEARTBEAT = 0x7A110002
    LOSS = 0x7A110003
    COMMIT = 0x7A110004


def chance_of(cause: Cause, seed: int, number: int = 0) -> np.random.Generator:
    """Return the generator of item `number` of `cause` in runs with `seed`."""
    return np.random.default_rng((seed, cause, number))
