"""Attach tokens for a cluster: a token made at one host is good at each host, once.

The other hosts get its hash before the caller gets the token.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

from paddock.host.audit import by_host
from paddock.host.cluster.forwarding import Forwarding, RequestHandlers
from paddock.host.cluster.membership import Membership
from paddock.host.cluster.remote_requests import Done, LetIn
from paddock.rules.access.signatures import HOST, Credential
from paddock.rules.agents.addresses import attach_address
from paddock.rules.cluster import KnownHost
from paddock.rules.rows.rows import AuditRow

TELL_SECONDS = 3.0
"""How long the other hosts may take to accept a token; a runner needs another token for one that did not."""


class AttachTokenStore(Protocol):
    def mint(
        self, workspace: str, author: str, name: str, permissions: Any = None, *, by: Credential = HOST
    ) -> str: ...
    def digest_of(self, token: str) -> bytes: ...
    def admit(
        self,
        digest: bytes,
        workspace: str,
        author: str,
        name: str,
        permissions: Any = None,
        *,
        by: Credential = HOST,
    ) -> None: ...


@dataclass(eq=False)
class Attaching:
    tokens: AttachTokenStore
    _: KW_ONLY
    forwarding: Forwarding
    members: Membership | None
    note: Callable[[AuditRow], None]
    clock: Callable[[], float]

    @property
    def remote_handlers(self) -> RequestHandlers:
        return {LetIn: self._let_in}

    async def mint(
        self, workspace: str, author: str, name: str, permissions: Any = None, *, by: Credential = HOST
    ) -> str:
        """Make a token, good for a minute and once at each host. Runners attached with it are dropped when `by` is
        revoked. Raises HostError."""
        token = self.tokens.mint(workspace, author, name, permissions, by=by)
        if self.members is not None:
            request = LetIn(self.tokens.digest_of(token), workspace, author, name, permissions, by)
            ask = (self.forwarding.ask(peer.boot, request, seconds=TELL_SECONDS) for peer in self.members.others)
            await asyncio.gather(*ask)
        return token

    def way_to(self, door: str) -> str | None:
        """Where to relay a runner that asks for the host at this address: "" if it is this host, None if there is no
        such host."""
        if door in addresses_of(self.members):
            return door
        return "" if self.members is not None and door in _doors(self.members.known) else None

    async def _let_in(self, asked: LetIn) -> Done:
        self.tokens.admit(asked.digest, asked.workspace, asked.author, asked.name, asked.permissions, by=asked.by)
        plugin = f"{asked.author}/{asked.name}"[:256]
        self.note(
            by_host(
                "runners.attach_token",
                plugin,
                at=self.clock(),
                workspace_id=asked.workspace,
                scope="hosts",
                result="allowed",
                reason="another host made this token",
            )
        )
        return Done()


def addresses_of(members: Membership | None) -> Sequence[str]:
    return _doors(members.others) if members is not None else ()


def _doors(hosts: Sequence[KnownHost]) -> Sequence[str]:
    there = (host.url for host in hosts if host.gone is None and host.url.startswith("http"))
    return [attach_address(url) for url in there]
