"""Ids the host mints: for runs, messages and transactions. Nothing else makes them."""

import os
import time


def new_id() -> str:
    """A time-ordered UUID (version 7), so that ids sort by when they were made."""
    stamp = f"{time.time_ns() // 1_000_000:012x}"
    chance = os.urandom(10).hex()
    variant = "89ab"[int(chance[3], 16) & 3]
    return f"{stamp[:8]}-{stamp[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[8:]}"
