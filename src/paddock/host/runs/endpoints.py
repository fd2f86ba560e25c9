"""Runs that can be reached over MCP: a fresh token for each, known here by its hash alone, dead with the run.

Nothing is stored: a host that restarts ends its runs, and with them their tokens. What a caller may do is not decided
here: a token stands for the connection its run was started on, and the gate takes it from there.
"""

import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from paddock.host.runs.live_run import LiveRun
from paddock.ports import RUN_SOCKET, Caller

NAME: Final = "host"
PATH: Final = "/mcp/run"
TOKEN_ENV: Final = "PADDOCK_RUN_TOKEN"  # noqa: S105 - the name of a variable
SECRET: Final = "mcp_token"  # noqa: S105 - the name of a secret


class RunEndpoints:
    def __init__(self, address: str | None = None) -> None:
        self.address = address
        """Where this host can be reached over HTTP; unless set, not known before it listens."""
        self.socket: str | None = None
        """Where it can be reached from a sandbox without network."""
        self._runs: dict[bytes, LiveRun] = {}
        self._hashes: dict[str, bytes] = {}
        self._over: list[Callable[[str], None]] = []
        self._opened: list[Callable[[], None]] = []

    @property
    def reachable(self) -> int:
        """How many runs can be reached."""
        return len(self._runs)

    def when_over(self, hear: Callable[[str], None]) -> None:
        """Somebody wants to know when a run that could be reached has ended."""
        self._over.append(hear)

    def when_opened(self, hear: Callable[[], None]) -> None:
        """Somebody wants to know that a run may be called soon."""
        self._opened.append(hear)

    def open(self, run: LiveRun, *, network: bool) -> tuple[Mapping[str, Any], Mapping[str, str]] | None:
        """Let a run be reached: what to tell it, and the secret that goes beside it. None when there is no way."""
        url = self._url(network=network)
        if url is None:
            return None
        token = secrets.token_urlsafe(32)
        self.close(run.turn_id)
        self._hashes[run.turn_id] = digest = _hash(token)
        self._runs[digest] = run
        for hear in self._opened:
            hear()
        told: dict[str, Any] = {"name": NAME, "transport": "http", "url": url, "headers": {}, "token_env": TOKEN_ENV}
        return told, {SECRET: token}

    def close(self, run_id: str) -> None:
        """The run has ended, and its token with it."""
        digest = self._hashes.pop(run_id, None)
        if digest is not None:
            del self._runs[digest]
            for hear in self._over:
                hear(run_id)

    def find(self, token: str) -> LiveRun | None:
        """The run this token stands for, while it goes on."""
        run = self._runs.get(_hash(token))
        return None if run is None or run.settled or run.over or run.connection_id is None else run

    def _url(self, *, network: bool) -> str | None:
        if network:
            return None if self.address is None else f"{self.address}{PATH}"
        return None if self.socket is None else f"unix:{RUN_SOCKET}"


def caller_of(run: LiveRun) -> Caller:
    """Caller behind the token of a run."""
    plugin = run.grant.runner_id.removeprefix("plugin:").rpartition("/")[0]
    return Caller(plugin, run.connection_id or "", door="mcp")


def _hash(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()
