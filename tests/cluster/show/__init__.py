"""`make cluster`: several nodes on one machine to look at, and `ARGS=--break`: what clients see of each failure."""
