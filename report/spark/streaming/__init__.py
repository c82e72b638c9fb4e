"""The report's transforms on a run that goes on: how many events of each window kept the promise, once it is over."""
