"""One conversation of a client: what is outstanding, consumers, transactions, and the order of answers."""
