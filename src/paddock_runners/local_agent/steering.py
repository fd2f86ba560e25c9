"""Input that arrives while the agent works: taken in between two answers of the model, never in the middle of one."""

from paddock_runners.local_agent.prompt import current_input
from paddock_runners.toolkit.speakers import speaker_of, spoken_by
from paddock_runners.toolkit.transcript import Said
from paddock_sdk import HostApi, HostCallError
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED
from paddock_sdk.protocol.history import SteeringInputItem


class Steering:
    """Asks only when the host said that something waits."""

    def __init__(self, api: HostApi, *, group: bool) -> None:
        self._api = api
        self._group = group

    async def taken(self) -> list[Said]:
        """Pull new input as messages. Input that is not pulled gets a run of its own."""
        if not await self._api.steering.wait(0):
            return []
        try:
            items = await self._api.steering.pull()
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            return []
        return [said for item in items for said in self._told(item)]

    def _told(self, item: SteeringInputItem) -> list[Said]:
        given = item.input
        text = spoken_by(speaker_of(item.actor, group=self._group), given.text or "")
        return current_input(text, given.attachments, item.event.event_type, item.event.data)
