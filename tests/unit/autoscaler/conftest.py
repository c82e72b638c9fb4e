"""Property tests call compiled code: the first call of a process waits for the compiler, which is no failure."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
