"""Deduplication: what exchanges remember of the ids of messages that they have taken."""
