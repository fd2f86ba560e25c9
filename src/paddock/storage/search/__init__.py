"""When words get into the search indexes: in parts, once enough has come together or somebody looks, in turn.

What never lives here: SQL. Full-text search is where the databases differ most, so how a part is read, indexed and
found again is in each one's folder (`search.py`, `thread_search.py` and `knowledge.py` of `sqlite/` and `postgres/`).
"""
