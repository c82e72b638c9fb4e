"""The papers' tables and figures, computed again: ours beside theirs, with a verdict by rule."""
