"""Grouping: which partition an event goes to, chosen by its source from its key and the source's own counts.

Definitions: Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", 2017; `sticky_split` is ours.
"""
