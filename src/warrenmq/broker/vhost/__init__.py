"""Virtual hosts: what exists in each, and what all of them share."""
