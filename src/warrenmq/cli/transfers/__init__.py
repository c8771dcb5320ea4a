"""Messages sent elsewhere: `warren move`, `copy`, `redrive` and `transfers`."""
