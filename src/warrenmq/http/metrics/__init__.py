"""Numbers for Prometheus: three pages, under RabbitMQ's names where they mean the same. See docs/monitoring.md."""
