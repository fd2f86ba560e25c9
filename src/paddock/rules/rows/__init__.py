"""The records that are stored: one frozen type for each row, and the steps of a schema.

Which rows follow from a fact is worked out in `log/projection.py`, how a database keeps them in `storage/`. Nothing
here imports another room of rules.
"""
