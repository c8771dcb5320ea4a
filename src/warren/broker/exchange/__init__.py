"""One module per exchange type, and the walk that routes a message through exchanges."""
