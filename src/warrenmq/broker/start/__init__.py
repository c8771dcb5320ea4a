"""Taking up what the log found, and a clean stop."""
