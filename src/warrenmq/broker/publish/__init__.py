"""The way of a published message, from its content to what its publisher is told.

    arrival     content as it came, not yet going anywhere
    publisher   who publishes: what the stages may know
    stages      the checks, one function each, and their order as a table
    routes      where an identical publish went before
    path        one function: content in, through the stages, to the queues
    outcomes    what the publisher is told, now or when the log has the message
    publishing  what a channel keeps for all of that: numbers, confirms, mandatory messages, what waits for tx.commit

Putting a message into its queues is in ``delivering.py``, beside this room: dead letters and due messages go there too.
"""
