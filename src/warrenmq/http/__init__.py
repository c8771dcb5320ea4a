"""The management API, metrics and pages."""
