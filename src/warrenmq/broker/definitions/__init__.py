"""Definitions as documents: export, import, and policies put into force."""
