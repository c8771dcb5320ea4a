"""OpenTelemetry: metrics and spans to a collector, by the official SDK. See docs/monitoring.md."""
