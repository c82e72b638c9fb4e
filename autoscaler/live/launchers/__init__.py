"""Launchers of replicas as processes or pods; TAILPACK_LAUNCHER selects one."""
