"""The schedule of delayed messages: what is due when."""
