"""Machines that break, clients that remember, and a checker that compares: a cluster as its operators will have it."""
