"""`warren explain`."""
