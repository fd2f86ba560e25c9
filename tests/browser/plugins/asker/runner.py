"""Asks its user: by a card, by questions, by an action that needs a permission. Says what it was answered."""

import json

from paddock_sdk import AgentRunner, Results, artifact_created, completed, message, serve

ORDER = {
    "kind": "form",
    "title": "Your order",
    "fields": [
        {"name": "colour", "label": "Colour", "input": "choice", "options": ["red", "green"], "required": True},
        {"name": "many", "label": "How many", "input": "number", "required": True},
    ],
    "submit": "Order",
}
CHOICES = {"kind": "choices", "title": "Tea or coffee?", "items": [{"label": "Tea", "text": "tea it is"}, "Coffee"]}
QUESTIONS = [
    {"id": "sure", "message": "Are you sure?", "response_schema": {"properties": {"approved": {"type": "boolean"}}}},
    {
        "id": "seat",
        "message": "Which seat?",
        "response_schema": {
            "properties": {
                "row": {"type": "integer", "title": "Row"},
                "side": {"title": "Side", "enum": ["left", "right"]},
            },
            "required": ["row", "side"],
        },
    },
]


class Asker(AgentRunner):
    permissions = {"platform_api": ["message.edit"], "artifacts": ["create"], "storage": ["plugin"]}  # noqa: RUF012

    async def run(self, ctx, api) -> Results:
        params = (ctx.adapter.extra.get("params") if ctx.adapter else None) or {}
        if resumed := params.get("resume"):
            told = {entry["interruptId"]: entry.get("payload", entry["status"]) for entry in resumed}
            yield message(f"Told: {json.dumps(told, sort_keys=True)}")
            yield completed()
            return
        match (ctx.input.text or "").split():
            case ["card"]:
                yield message("Please order.", ui_hints=[ORDER, CHOICES])
            case ["ask"]:
                yield message("I have questions.")
                yield completed(interrupts=QUESTIONS)
                return
            case ["keep"]:
                await api.state.set("conversation", "colour", "green")
                await api.artifacts.create(b"green it is", name="notes.txt", mime_type="text/plain")
                yield message("Kept.")
            case ["hand", "out"]:
                yield message("Here you are.")
                yield artifact_created("file", content=b"green it is", name="notes.txt", mime_type="text/plain")
            case ["permission"]:
                await api.platform.request_action("message.edit", {"message_id": "m-1"}, {"text": "better"})
                yield message("I would like to edit a message.")
            case _:
                yield message(f"Heard: {ctx.input.text}")
        yield completed()


serve(Asker())
