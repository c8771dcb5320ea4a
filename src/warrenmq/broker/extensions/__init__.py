"""Other people's code in the broker: interceptors and decorators."""
