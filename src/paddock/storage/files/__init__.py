"""Bytes and files beside the database: stored blobs on disk or in a bucket, the data directory and its lock, backups,
keys and secrets in files of their own.

What never lives here: rows. Whose the bytes are is said by tables, and no name of anybody else becomes a path.
"""

ABOUT, TABLES = "database.json", "tables"
"""A file and a directory that only the backup of a PostgreSQL database has."""
