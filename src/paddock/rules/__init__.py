"""Decisions as pure functions of values: no I/O, no clock, no chance.

One room for each concept, in layers: a room imports rooms below it and never one above, and the import contract in
`pyproject.toml` has the order. `errors.py` is the closed list of errors, `values.py` the base class of values,
`cluster.py` is about several hosts on one store, `people.py` about usage and budgets. Ports, storage and doors are
never imported here.
"""
