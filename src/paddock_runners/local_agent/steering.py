"""Input that arrives while the agent works: taken in between two answers of the model, never in the middle of one."""

from paddock_runners.toolkit.transcript import Said
from paddock_sdk import HostApi, HostCallError
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED


class Steering:
    """Asks only when the host said that something waits."""

    def __init__(self, api: HostApi) -> None:
        self._api = api

    async def taken(self) -> list[Said]:
        """What came in since the last time, as messages. What is not taken in gets a run of its own."""
        if not await self._api.steering.wait(0):
            return []
        try:
            items = await self._api.steering.pull()
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            return []
        return [{"role": "user", "content": item.input.text} for item in items if item.input.text]
