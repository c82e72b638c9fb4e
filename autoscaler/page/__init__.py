"""The live page: the state of one group, folded from its records, its differences as a stream, and the HTML page."""
