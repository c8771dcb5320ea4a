"""Counters over time, rates of them, ages: what the API's numbers are made of."""
