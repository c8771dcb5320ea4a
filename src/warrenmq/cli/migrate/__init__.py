"""``warren migrate``: ``command.py`` (the order of things), ``definitions.py`` (what differs), ``messages.py`` (the
messages' way, confirmed there before they are acknowledged here).
"""
