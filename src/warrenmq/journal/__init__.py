"""The journal: what became of every durable message, as tables."""
