"""The node itself over HTTP: what it is, how it is, its sums and its backup."""
