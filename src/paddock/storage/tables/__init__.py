"""Rows that both databases keep alike: each table, its changes and its questions, written once.

A module here has the statements of one concept and the part of the store that asks them. How a statement is bound and
executed is the business of `storage/sqlite` and `storage/postgres`. The log, its fence and search are not here: they
are written by hand for each database.
"""

from collections.abc import Mapping, Sequence

from paddock.storage.tables import calendar, plugins, taking_over
from paddock.storage.tables.statements import Change

CHANGES: Mapping[type, Sequence[Change]] = {**calendar.CHANGES, **plugins.CHANGES, **taking_over.CHANGES}
"""The statements that write a row, in order."""
