"""asyncio: listeners, TLS, transport glue, signals. The only place with an event loop."""
