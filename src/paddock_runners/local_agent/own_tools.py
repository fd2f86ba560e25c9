"""Tools the agent has by itself: remember something about the user, search the conversation, show a card."""

from collections.abc import Mapping
from typing import Any, cast

from paddock_runners.toolkit.calls import Offer, Outcome
from paddock_runners.toolkit.transcript import shortened
from paddock_sdk import HostApi, HostCallError, RunContext

PREFERENCES = "preferences"
"""In actor state: what is known about the user, in every conversation with this agent."""
MAX_PREFERENCES = 50
MAX_VALUE_CHARS = 500
SHOWN_CHARS = 600


def preferences_of(ctx: RunContext) -> dict[str, str]:
    """Remembered preferences of the person who speaks, in a steady order."""
    kept = ctx.state.actor.get(PREFERENCES)
    known = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
    return {str(about): str(value) for about, value in sorted(known.items()) if isinstance(value, str)}


class OwnTools:
    """Each is offered only when the run may do what it needs."""

    def __init__(self, ctx: RunContext, api: HostApi, wanted: tuple[str, ...]) -> None:
        self._ctx, self._api, self._wanted = ctx, api, wanted
        self.ui_hints: Any = None
        """What the model wants shown with its answer."""

    def offers(self) -> list[Offer]:
        may = self._ctx.context.available_apis
        possible = {
            "remember": (may.state, self._remember_offer),
            "search_history": (may.history_search, self._search_offer),
            "show": (True, self._show_offer),
        }
        return [make() for name, (can, make) in possible.items() if can and name in self._wanted]

    # --- remember

    def _remember_offer(self) -> Offer:
        text = {"type": "string"}
        return Offer(
            "remember",
            "Remember a fact about the user for later conversations, such as their name.",
            {"type": "object", "properties": {"about": text, "value": text}, "required": ["about", "value"]},
            own=self._remember,
        )

    async def _remember(self, arguments: Mapping[str, Any]) -> Outcome:
        about, value = arguments.get("about"), arguments.get("value")
        if not isinstance(about, str) or not isinstance(value, str) or not about.strip():
            return Outcome(error='remember needs two texts: about (such as "name") and value')
        if len(about) > 80 or len(value) > MAX_VALUE_CHARS:
            return Outcome(error=f"about may have 80 characters and value {MAX_VALUE_CHARS}; say it shorter")
        try:
            return await self._add(about.strip().lower(), value.strip())
        except HostCallError as error:
            return Outcome(error=f"it could not be remembered: {error.error.message}")

    async def _add(self, about: str, value: str) -> Outcome:
        """Read and write with the version, so that two conversations at once lose nothing."""
        for _ in range(3):
            kept, version = await self._api.state.get_with_version("actor", PREFERENCES, {})
            known: dict[str, Any] = dict(cast("dict[str, Any]", kept)) if isinstance(kept, dict) else {}
            if about not in known and len(known) >= MAX_PREFERENCES:
                return Outcome(
                    error=f"{MAX_PREFERENCES} things are remembered already; replace one of: {', '.join(known)}"
                )
            try:
                await self._api.state.set("actor", PREFERENCES, {**known, about: value}, expected_version=version)
            except HostCallError as error:
                if not error.retryable:
                    raise
                continue
            return Outcome(f"remembered: {about} = {value}")
        return Outcome(error="it could not be remembered: the notes kept changing; try again")

    # --- search_history

    def _search_offer(self) -> Offer:
        return Offer(
            "search_history",
            "Search this conversation for earlier messages that contain certain words.",
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            own=self._search,
        )

    async def _search(self, arguments: Mapping[str, Any]) -> Outcome:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return Outcome(error="search_history needs a query: words that the message contains")
        try:
            found = await self._api.history.search(query, top_k=8)
        except HostCallError as error:
            return Outcome(error=f"the conversation could not be searched: {error.error.message}")
        own = self._ctx.event.event_id
        lines = [
            f"{item.role}: {shortened(item.content or '', SHOWN_CHARS)}" for item in found.items if item.event_id != own
        ]
        return Outcome("\n".join(lines) or "nothing was found")

    # --- show

    def _show_offer(self) -> Offer:
        return Offer(
            "show",
            "Show a card beside your answer: a list of hints, each with a kind (summary, fields, list, table, steps, "
            "status, alert, choices, links) and what belongs to it.",
            {
                "type": "object",
                "properties": {"hints": {"type": "array", "items": {"type": "object"}}},
                "required": ["hints"],
            },
            own=self._show,
        )

    async def _show(self, arguments: Mapping[str, Any]) -> Outcome:
        hints = arguments.get("hints")
        if not isinstance(hints, list) or not hints:
            return Outcome(
                error='show needs hints: a list such as [{"kind": "summary", "title": "...", "text": "..."}]'
            )
        self.ui_hints = cast("list[Any]", hints)
        return Outcome("it will be shown with your answer")
