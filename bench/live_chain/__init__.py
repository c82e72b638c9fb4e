"""Groups one behind the other, live on one machine, each scaled by itself and all as one."""
