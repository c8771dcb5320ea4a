"""What would become of messages, from definitions and records alone: the broker's rules without a broker.

path         the publish path: the verdict on one message
relevance, words    what of a message can change it
queues       limits, times to live and dead-letter exchanges of every queue, and which are worth being played through
waiting      one queue from its first message to its last: what expires, what is dropped, what is refused
letters      where what a queue gives up goes
playing      queues that give letters to one another
changed      other definitions, as somebody asks for them
comparing    all of it over a list of messages, under two documents
outcomes     the words for what may become of a message

Nothing here knows Spark, files or sockets: ``spark/routing`` and ``spark/supposing`` go through tables of messages with
it, and the journal's process through the newest ones.
"""
