"""Runners that attach from elsewhere serve all hosts: a token made at one is good at each of them, once.

The others are told its hash before anybody has the token. What is carried to and fro is not known here.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from paddock.host.cluster.answering import RequestHandlers
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.cluster.membership import Membership
from paddock.host.cluster.remote_requests import LetIn, NothingToTell
from paddock.rules.access.credentials import HOST, Credential
from paddock.rules.agents.addresses import attach_address
from paddock.rules.cluster.leases import Peer
from paddock.rules.rows.rows import AuditRow

TELL_SECONDS = 3.0
"""How long the others may take to hear of a token; one that does not is met with another token later."""


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


class Attaching:
    def __init__(
        self,
        tokens: AttachTokenStore,
        *,
        forwarding: Forwarding,
        members: Membership | None,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
    ) -> None:
        self._tokens = tokens
        self._forwarding = forwarding
        self._members = members
        self._note = note
        self._clock = clock

    @property
    def remote_handlers(self) -> RequestHandlers:
        """How this host does it when another one asks."""
        return {LetIn: self._let_in}

    async def mint(
        self, workspace: str, author: str, name: str, permissions: Any = None, *, by: Credential = HOST
    ) -> str:
        """A token, good once at each host and for a minute; what attaches with it leaves when `by` ends. Raises
        HostError."""
        token = self._tokens.mint(workspace, author, name, permissions, by=by)
        if self._members is not None:
            told = LetIn(self._tokens.digest_of(token), workspace, author, name, permissions, by)
            ask = (self._forwarding.ask(peer.boot, told, seconds=TELL_SECONDS) for peer in self._members.others)
            await asyncio.gather(*ask)
        return token

    def addresses(self) -> Sequence[str]:
        """Where else a runner that attached here attaches, with the same token or another one."""
        return addresses_of(self._members)

    def way_to(self, door: str) -> str | None:
        """Where a runner is carried on to that asks for the host at this address, because it does not reach it
        itself: nothing, when that is this host; None, when there is no such host."""
        if door in self.addresses():
            return door
        return "" if self._members is not None and door in _doors(self._members.known) else None

    async def _let_in(self, told: LetIn) -> NothingToTell:
        self._tokens.admit(told.digest, told.workspace, told.author, told.name, told.permissions, by=told.by)
        plugin = f"{told.author}/{told.name}"[:256]
        self._note(
            AuditRow(
                time=self._clock(),
                workspace_id=told.workspace,
                actor="host",
                action="runners.attach_token",
                resource=plugin,
                scope="hosts",
                result="allowed",
                reason="another host made this token",
            )
        )
        return NothingToTell()


def addresses_of(members: Membership | None) -> Sequence[str]:
    """Where runners attach to the other hosts."""
    return _doors(members.others) if members is not None else ()


def _doors(hosts: Sequence[Peer]) -> Sequence[str]:
    """Where runners attach to these hosts; one that is gone has no door."""
    there = (host.url for host in hosts if host.gone is None and host.url.startswith("http"))
    return [attach_address(url) for url in there]
