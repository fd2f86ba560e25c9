"""Decisions as pure functions of values: no I/O, no clock, no chance. One room for each concept.

`session/` is the session machine. `errors.py` is the closed list of errors; `values.py` says what a value is.
"""
