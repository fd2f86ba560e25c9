"""Addresses of other servers as people write them, and what may be shown of them. Pure; nothing is looked up."""

import re
from urllib.parse import parse_qsl, urlsplit

POSTGRES = ("postgresql://", "postgres://")
_SECRETS = (
    (re.compile(r"//[^\s]*@"), "//***@"),
    (re.compile(r"(?i)(password|sslpassword|token|secret)=[^&\s]*"), r"\1=***"),
)


def is_postgres(address: str) -> bool:
    return address.startswith(POSTGRES)


def without_secrets(text: str) -> str:
    """The same text with user names and passwords of any address in it made unreadable."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def place_of(address: str) -> str:
    """Where an address points, in words that may be shown: machine, port and database, never who or with what."""
    try:
        parts = urlsplit(address)
        asked = dict(parse_qsl(parts.query))
        where = parts.netloc.rpartition("@")[2] or asked.get("host", "this machine")
        port = f":{asked['port']}" if "port" in asked else ""
    except ValueError:
        return "an address that cannot be read"
    name = parts.path.lstrip("/") or asked.get("dbname") or asked.get("database") or ""
    return f"{where}{port}/{name}" if name else f"{where}{port}"
