"""What each AMQP method does: one module per class, one function per method, named after it."""
