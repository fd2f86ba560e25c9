"""Keys of providers: looked up where they lie when they are needed, and shown to nobody.

A key leaves here only for the provider's client. Whatever text comes back from a provider passes `hide` first.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

MAX_KEY_BYTES = 16 * 1024
_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|key|Bearer)[-_ ][\w*.-]{6,}", re.IGNORECASE)


class MissingKeyError(Exception):
    """There is no key where it should be; the text says where to put it."""


class Key:
    """A reference, `env:NAME` or `file:PATH`, and what it leads to at the moment."""

    def __init__(
        self, reference: str | None, *, environ: Mapping[str, str] | None = None, base: Path | None = None
    ) -> None:
        self.reference = reference
        self._environ = os.environ if environ is None else environ
        self._base = base or Path()
        self._last = ""

    def __repr__(self) -> str:
        return f"Key({self.reference!r})"

    def read(self) -> str | None:
        """The key, or None when none is asked for. Raises MissingKeyError."""
        if self.reference is None:
            return None
        kind, _, name = self.reference.partition(":")
        self._last = self._from_environment(name) if kind == "env" else self._from_file(name)
        return self._last

    def hide(self, text: str) -> str:
        """The text without this key, and without anything that looks like one."""
        if self._last:
            text = text.replace(self._last, "***")
        return _LOOKS_LIKE_A_KEY.sub("***", text)

    def _from_environment(self, name: str) -> str:
        value = self._environ.get(name, "").strip()
        if not value:
            raise MissingKeyError(
                f"the environment variable {name} is not set; set it to the provider's key and start again"
            )
        return value

    def _from_file(self, name: str) -> str:
        path = self._base / Path(name).expanduser()
        try:
            with path.open("rb") as file:
                value = file.read(MAX_KEY_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not text"
            raise MissingKeyError(
                f"the key file {path} cannot be read: {reason}; put the provider's key there"
            ) from error
        if not value:
            raise MissingKeyError(f"the key file {path} is empty; put the provider's key there")
        return value
