"""Removes the files of a deleted session from the disks of all hosts that are there."""

import asyncio
from collections.abc import Callable, Sequence

from paddock.host.cluster.answering import RequestHandlers
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.cluster.remote_requests import ForgetFiles, NothingToTell
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.rules.cluster.leases import Peer

TELL_SECONDS = 5.0


class DirectoriesEverywhere:
    """Working directories of a conversation, here and on the other hosts. One that is away keeps what it has."""

    def __init__(self, here: WorkingDirectories, forwarding: Forwarding, others: Callable[[], Sequence[Peer]]) -> None:
        self._here = here
        self._forwarding = forwarding
        self._others = others

    @property
    def remote_handlers(self) -> RequestHandlers:
        """How this host does it when another one asks."""
        return {ForgetFiles: self._asked}

    async def forget(self, workspace_id: str, conversation_id: str) -> None:
        await self._here.forget(workspace_id, conversation_id)
        request = ForgetFiles(workspace_id, conversation_id)
        await asyncio.gather(
            *(self._forwarding.ask(peer.boot, request, seconds=TELL_SECONDS) for peer in self._others())
        )

    async def _asked(self, request: ForgetFiles) -> NothingToTell:
        await self._here.forget(request.workspace_id, request.conversation_id)
        return NothingToTell()
