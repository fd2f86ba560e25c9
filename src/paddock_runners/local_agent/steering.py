"""Input that arrives while the agent works: taken in between two answers of the model, never in the middle of one."""

from paddock_runners.toolkit.transcript import Said
from paddock_sdk import HostApi, HostCallError
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED


class Steering:
    """Asks until the host says that there is no such thing."""

    def __init__(self, api: HostApi) -> None:
        self._api = api
        self._offered = True

    async def taken(self) -> list[Said]:
        """What came in since the last time, as messages."""
        if not self._offered:
            return []
        try:
            items = await self._api.steering.pull()
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            self._offered = False
            return []
        return [{"role": "user", "content": item.input.text} for item in items if item.input.text]
