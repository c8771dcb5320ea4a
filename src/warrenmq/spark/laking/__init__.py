"""A lake of journals: many brokers' events in one table by day and vhost, kept in order by `warren pipeline lake`.

snapshot   what of the folder counts, and reading it: for audits and all others that read journals
columns    events as rows of the lake
keeping    what is to be taken, joined and removed: decided by the manifest alone
job        one run: each step of which may be the last
"""
