"""The rules of the broker: synchronous, no sockets; clock, log and randomness are handed in."""
