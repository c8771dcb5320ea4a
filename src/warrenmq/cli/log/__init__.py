"""`warren log`: a data folder looked at."""
