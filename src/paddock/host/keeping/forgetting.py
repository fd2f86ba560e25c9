"""What the hosts keep on their own disks of a conversation that is forgotten: it goes on all of them that are there."""

import asyncio
from collections.abc import Callable, Sequence

from paddock.host.cluster.forwarding import ForgetFiles, NothingToTell, Owners
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.rules.cluster.leases import Peer

TELL_SECONDS = 5.0


class DirectoriesEverywhere:
    """Working directories of a conversation, here and on the other hosts. One that is away keeps what it has."""

    def __init__(self, here: WorkingDirectories, owners: Owners, others: Callable[[], Sequence[Peer]]) -> None:
        self._here = here
        self._owners = owners
        self._others = others
        owners.serve({ForgetFiles: self._asked})

    async def forget(self, workspace_id: str, conversation_id: str) -> None:
        await self._here.forget(workspace_id, conversation_id)
        deed = ForgetFiles(workspace_id, conversation_id)
        await asyncio.gather(*(self._owners.ask(peer.boot, deed, seconds=TELL_SECONDS) for peer in self._others()))

    async def _asked(self, deed: ForgetFiles) -> NothingToTell:
        await self._here.forget(deed.workspace_id, deed.conversation_id)
        return NothingToTell()
