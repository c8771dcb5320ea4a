"""What happens now, as it happens: `warren top`, `watch` and `trace`."""
