"""Who may do what: users, permissions, passwords, and patterns that cannot hang the broker."""
