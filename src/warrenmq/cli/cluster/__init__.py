"""``warren cluster``: how several nodes stand, and what an operator does with them."""
