"""Secrets of agents: looked up where they lie, when a runner is about to need them, and told to nobody else."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock.rules.agents.config import Place, Reference, references, with_values

MAX_SECRET_BYTES = 64 * 1024


class SecretError(Exception):
    """A secret cannot be had; the text names the place and the reason, never a value."""


def resolved(config: Mapping[str, Any], passwords: frozenset[str], base: Path | None, where: str) -> dict[str, Any]:
    """The settings with every reference replaced by what it refers to. Relative files lie beside `base`.

    Without a base nothing is looked up: whoever may write settings over the network must not read the host's files.
    """
    found: dict[Place, str] = {}
    for place, known in references(config, passwords):
        name = ".".join((where, *map(str, place)))
        if base is None:
            raise SecretError(f"{name}: references to secrets are read in the agents file only; write the value here")
        found[place] = _value(known, base, name)
    return with_values(config, found)


def _value(known: Reference, base: Path, name: str) -> str:
    if known.kind == "env":
        value = os.environ.get(known.name)
        if not value:
            raise SecretError(f"{name}: the host's environment has no variable {known.name}")
        return value
    try:
        with (base / Path(known.name).expanduser()).open("rb") as file:
            raw = file.read(MAX_SECRET_BYTES + 1)
        if len(raw) > MAX_SECRET_BYTES:
            raise SecretError(f"{name}: the file {known.name} is larger than {MAX_SECRET_BYTES} bytes")
        return raw.decode().rstrip("\r\n")
    except OSError as error:
        raise SecretError(f"{name}: the file {known.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SecretError(f"{name}: the file {known.name} is not UTF-8 text") from error
