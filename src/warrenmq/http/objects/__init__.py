"""What a broker has by name, one module a resource: virtual hosts, users, queues and the rest."""
