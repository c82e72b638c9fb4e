"""Random faults, seeded, on a running pipeline, and a checker of what it promises that shares no code with it."""
