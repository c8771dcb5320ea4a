"""The octets of HTTP: connections, headers, where a request comes from."""
