"""Sockets, threads and clocks around the rules: what carries out their effects and brings them the events."""
