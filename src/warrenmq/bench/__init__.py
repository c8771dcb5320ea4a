"""A load tool on the project's own client: `warren bench`, for any AMQP 0-9-1 broker."""
