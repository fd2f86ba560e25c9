"""Buttons and forms of cards, pressed and sent."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from paddock.host.conversations.ui_actions import UiActions
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.origins import source_of
from paddock.http_api.edge.shapes import Accepted, Body, Json, about, accepted

PATH = "/api/v1/agent/ui-actions/{action}"
REF = "0199a8c4-5b1e-7c3a-9d2f-0123456789ab.rXkq3nVw0mZ4tUe7"


class UiAnswer(Body):
    values: Annotated[
        Json, about(must="be an object: the fields of the form by name", example={"day": "2026-03-15"})
    ] = msgspec.field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class UiActionsDoor(Operations):
    group = "Cards"
    auth: Auth
    actions: UiActions

    @operation(
        "POST",
        PATH,
        {202: "The run that answers is on record; the same again gives the same answer."},
        errors=(404, 409),
        rate="runs",
    )
    async def post(
        self,
        who: Principal,
        request: Request,
        action: Annotated[str, about("The `ref` of the button or form.", example=REF)],
        body: UiAnswer | None = None,
    ) -> Accepted:
        """Press a button of a card, or send its form

        For actions of kind `say` and `answer`; clients do `open` and `copy` themselves."""
        return accepted(
            await self.actions.use(who, action, {} if body is None else body.values, source_of(request.scope))
        )
