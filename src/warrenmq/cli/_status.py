"""The exit statuses of all commands but ``ctl``, which has rabbitmqctl's."""

from __future__ import annotations

DONE = 0
NO = 1
WRONG = 2
NO_BROKER = 3
INTERRUPTED = 130  # as shells have it: 128 and the signal

MEANINGS = {
    DONE: "done; the answer is yes",
    NO: "the answer is no: the queue is empty, no queue took the message, the sums are off, something does not check",
    WRONG: "the command is wrong, or the broker refused what it asks for",
    NO_BROKER: "no broker answered, or it refused the login",
}
