"""Messages sent elsewhere by an operator: moved, copied, redriven, and taken back."""
