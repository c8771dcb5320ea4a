"""Policies: what one says, which one wins, what its keys may be."""
