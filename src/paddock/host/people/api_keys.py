"""API keys: made here, shown once, stored as a hash only."""

import secrets
import time
import uuid
from hashlib import sha256
from typing import Literal

from paddock.ports import ApiKeyRow

PREFIX = "pdk_"
"""What secret scanners can look for."""


def new_key(workspace_id: str, user_id: str, role: Literal["user", "admin"]) -> tuple[str, ApiKeyRow]:
    """A key of 256 bits of chance, and the row that recognises it later."""
    key = PREFIX + secrets.token_urlsafe(32)
    return key, ApiKeyRow(
        key_id=str(uuid.uuid4()),
        key_hash=sha256(key.encode()).digest(),
        workspace_id=workspace_id,
        user_id=user_id,
        role=role,
        created_at=time.time(),
    )
