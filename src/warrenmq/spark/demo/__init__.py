"""`make demo`: a broker that is killed, a publisher that goes on, and Spark, which loses nothing of it.

Duty: show that the parts fit, in two minutes and in one terminal, with a sum that closes. Only what users can call
themselves: ``story.py`` is what happens, ``broker.py`` and ``publisher.py`` the two that are on stage, ``show.py`` and
``picture.py`` what one sees.
"""

from warrenmq.spark.demo.story import main

__all__ = ["main"]
