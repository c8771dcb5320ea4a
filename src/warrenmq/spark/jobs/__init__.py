"""The pipeline's jobs: each a function over Spark, and a command ``warren pipeline ...``."""
