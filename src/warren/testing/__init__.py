"""The embedded broker, the virtual clock and faults, for tests of any project."""
