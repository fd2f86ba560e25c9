"""The store: everything a host keeps, in one SQLite file or in one PostgreSQL database.

- `tables/` states each row type once: columns, key, writes, queries. Nothing there knows a database.
- `search/` is full-text search over any engine: when words get into the indexes, how hits become answers.
- `sqlite/` and `postgres/` are the dialects: an engine that binds and executes those statements, the append to the log
  behind its fence, the indexes of words, and what only that database needs (claims and hosts).
- `owners.py` is the part of a writer that both have alike.
- `files/` has bytes, backups, keys and secrets. `importing.py` moves a SQLite directory into PostgreSQL.
- `sql/` has the schema, step by step. A step that was released is never changed.

A row comes in by `write` or with the facts of an `append`, and leaves by a query of `tables/`. A new table is a step in
`sql/`, one statement and its query in `tables/`. What never lives here: decisions. They are in `rules/`.
"""
