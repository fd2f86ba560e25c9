"""Credentials of a caller: how they are written into signed addresses, and when they expire. Pure."""

from collections.abc import Collection
from typing import Literal

from paddock.rules.values import Value


class Credential(Value, frozen=True):
    kind: Literal["host", "key", "token", "keyless"] = "host"
    """`host`: the host itself vouches for them, for as long as it runs."""
    key_id: str = ""
    ends_at: float | None = None

    def written(self) -> str:
        """Text for a signed address; empty where the host itself vouches."""
        match self.kind:
            case "key":
                return f"k.{self.key_id}"
            case "token":
                return f"t.{int(self.ends_at or 0)}"
            case "keyless":
                return "n."
            case "host":
                return ""


HOST = Credential()
KEYLESS = Credential("keyless")


def read_credential(written: str) -> Credential | None:
    """Parse the text that `Credential.written` makes; None for anything else."""
    if not written:
        return HOST
    kind, dot, value = written.partition(".")
    if kind == "k" and dot and value:
        return Credential("key", value)
    if kind == "t" and value.isdecimal() and value.isascii() and len(value) < 16:
        return Credential("token", ends_at=float(value))
    return KEYLESS if written == "n." else None


def why_over(given: Credential, *, now: float, live_keys: Collection[str], keyless: bool) -> str | None:
    """Return why the credential is no longer valid, None while it is. `live_keys` are the keys that are not revoked."""
    match given.kind:
        case "key" if given.key_id not in live_keys:
            return "the key that opened this was revoked"
        case "token" if given.ends_at is not None and now >= given.ends_at:
            return "the token that opened this has expired"
        case "keyless" if not keyless:
            return "this was opened without a key, and callers are known by key now"
        case _:
            return None
