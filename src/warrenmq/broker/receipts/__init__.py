"""Receipts: what became of a publish, said to whoever asked for it."""
