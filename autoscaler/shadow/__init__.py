"""The autoscaler beside a group that somebody else scales: it reads, decides, acts on nothing, says what that saves."""
