"""Types of settings: paths, addresses, names, lists in one text. Each raises ValueError for a wrong value."""

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from paddock.rules.agents.addresses import is_postgres
from paddock.rules.values import refusing

EMBEDDED = "embedded"
BUS_ADDRESS = re.compile(r"(nats|tls)://\S+")


def absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links the person chose


existing_file = refusing("no such file", Path.is_file)
existing_directory = refusing("no such directory", Path.is_dir)
variable_name = refusing("not a variable name", re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch)
operator_name = refusing("names nobody", re.compile(r"key:[^\s@]+|(?!key:)[^\s]+@[^\s@]+").fullmatch)
"""`key:ID` or `user@workspace`."""


def _is_artifacts_address(text: str) -> bool:
    return text == EMBEDDED or re.match(r"s3://[^/?\s]+", text) is not None


artifacts_address = refusing("no place for files", _is_artifacts_address)


def not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("empty")
    return text.strip()


def page(text: str) -> str:
    if text != "*" and not re.fullmatch(r"https?://[^\s/?#@*]+", text):
        raise ValueError("no origin")
    return text.lower()


def store_address(text: str) -> str:
    if text != EMBEDDED and not (is_postgres(text) and len(text) > len("postgresql://")):
        raise ValueError("no store")
    return text


def bus_address(text: str) -> str:
    servers = [part.strip() for part in text.split(",")]
    if text != EMBEDDED and not all(BUS_ADDRESS.fullmatch(server) for server in servers):
        raise ValueError("no bus")
    return text


def collector(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("no address")
    return text


def origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError("not an address without a path")
    return f"{parts.scheme}://{parts.netloc}"


def split(separator: str) -> BeforeValidator:
    """A list may come as one text, as the environment has no lists."""

    def apart(value: object) -> object:
        return [part.strip() for part in value.split(separator) if part.strip()] if isinstance(value, str) else value

    return BeforeValidator(apart)


def lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def no_bool(value: object) -> object:
    """`port = true` is a mistake, not the number 1."""
    if isinstance(value, bool):
        raise ValueError("not a number")  # noqa: TRY004 - pydantic turns this one into a finding
    return value


Int = Annotated[int, BeforeValidator(no_bool)]
Seconds = Annotated[float, BeforeValidator(no_bool)]
AnyPath = Annotated[Path, AfterValidator(absolute)]
Directory = Annotated[AnyPath, AfterValidator(existing_directory)]
File = Annotated[AnyPath, AfterValidator(existing_file)]
Lower = BeforeValidator(lower)
