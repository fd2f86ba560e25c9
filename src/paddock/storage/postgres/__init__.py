"""The store on PostgreSQL: many hosts may read it, each writes through one batched writer. Nothing outside this folder
knows PostgreSQL.
"""

from paddock.storage.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
