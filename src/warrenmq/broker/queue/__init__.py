"""Queues: what waits, what is out with consumers, who gets the next message."""
