"""Live equals simulated: a finished live run, simulated again from its own events and measured times, side by side."""
