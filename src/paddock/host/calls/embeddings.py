"""Vectors for knowledge: of passages on their way in and of questions. They use a model, so they are counted as one."""

from collections.abc import Sequence

from paddock.host.people.metering import EMBED, Metering
from paddock.ports.models import Models
from paddock.rules.people.model_usage import Payer, about_tokens_in


class Embeddings:
    """The knowledge bases' `Embed`."""

    def __init__(self, models: Models, metering: Metering) -> None:
        self._models = models
        self._metering = metering

    async def __call__(
        self, payer: Payer, model_id: str, texts: Sequence[str], *, deadline_at: float
    ) -> Sequence[Sequence[float]]:
        workspace = payer.workspace_id
        info = self._models.find(workspace, model_id)
        if info is None:  # whoever has the list says what is on it
            return (await self._models.embed(workspace, model_id, texts, deadline_at=deadline_at)).vectors
        async with self._metering.around(payer, info, EMBED) as meter:
            meter.asked = lambda: about_tokens_in(*texts)
            embedded = await self._models.embed(workspace, model_id, texts, deadline_at=deadline_at)
            meter.usage = embedded.usage
        return embedded.vectors
