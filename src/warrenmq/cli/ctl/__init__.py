"""``warren ctl``, which speaks as rabbitmqctl does.

In reading order: ``command.py`` (options, and how it ends), ``verbs.py`` (the table of verbs), ``call.py`` (what a verb
gets and gives), a module for each group of verbs, ``banners.py`` (the line before an answer), ``output.py`` (tables in
rabbitmqctl's formats), ``absent.py`` (verbs that are not there, and what to use instead).
"""
