"""`warren pipeline`: Spark jobs."""
