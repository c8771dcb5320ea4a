"""The differential test: the same random client runs against Warren and against a real RabbitMQ 3.10."""
