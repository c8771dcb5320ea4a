"""The one way into queues, the history of dead letters, large bodies, and the copies of the firehose."""
