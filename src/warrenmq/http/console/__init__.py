"""The console in the browser: its files, its log-in and its live stream; what it shows comes from the API."""
