"""What every part of the broker works with: the turn, time, numbers, limits, the store of definitions, alarms."""
