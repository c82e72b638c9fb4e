"""Run scenarios in the simulator, and measure them as live runs are measured."""
