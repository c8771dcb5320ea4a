"""Exchanges: one file per type, the index of bindings each keeps, and the walk from an exchange to queues.

Everything here is pure: no clock, no log, no sockets; randomness is handed in. The broker, ``warren explain`` and the
Spark jobs route with the same code.
"""
