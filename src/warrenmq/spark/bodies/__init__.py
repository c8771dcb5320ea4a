"""Typed bodies: JSON, Avro and Protobuf to columns and back, in plain Python on Arrow batches.

    decode.py     body -> a struct column, and what did not fit it
    encode.py     columns -> body
    formats.py    one body <-> plain Python values, a class a format
    fitting.py    plain values -> a Spark type, with what is left over
    shapes.py     the Spark type of an Avro or Protobuf schema
    registry.py   schemas by number from a schema registry

Spark's own Avro and Protobuf modules are jars that a cluster may not have; these need nothing but Python packages.
"""
