"""One client, from its first octet to its last."""
