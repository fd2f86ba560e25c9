"""AgentRunner, the class authors derive from, and the context it gets. How runs are driven is not here."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import PrivateAttr

from paddock_sdk.host_api import HostApi
from paddock_sdk.protocol.frames import PluginInfo
from paddock_sdk.protocol.history import TranscriptItem
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import (
    AgentRunnerCapabilities,
    AgentRunnerContextPolicy,
    AgentRunnerManifest,
    AgentRunnerPermissions,
    DynamicFormItemSchema,
)
from paddock_sdk.protocol.run_context import AgentRunContext
from paddock_sdk.results import Result

Results = AsyncIterator[Result]
"""What `run()` returns: write it as an async generator."""


class RunContext(AgentRunContext):
    """The context of one run, as the wire brought it, with a few conveniences."""

    _recent_tail: tuple[TranscriptItem, ...] = PrivateAttr(default=())

    @property
    def text(self) -> str:
        """The words of this input; empty when there are none."""
        return self.input.text or ""

    @property
    def recent_tail(self) -> tuple[TranscriptItem, ...]:
        """With `bootstrap = "recent_tail"`: what was said before this input, oldest first. Else empty."""
        return self._recent_tail

    def keep_recent_tail(self, newest_first: Sequence[TranscriptItem]) -> None:
        """Called once, before `run()`, with what was said before it."""
        self._recent_tail = tuple(item for item in reversed(newest_first) if item.event_id != self.event.event_id)


class AgentRunner:
    """One agent. Class attributes describe it; `run()` answers. One object serves many runs at once."""

    name: ClassVar[str] = "default"
    label: ClassVar[str | Mapping[str, str]] = ""
    description: ClassVar[str | Mapping[str, str]] = ""
    capabilities: ClassVar[AgentRunnerCapabilities | Mapping[str, Any]] = {}
    permissions: ClassVar[AgentRunnerPermissions | Mapping[str, Any]] = {}
    context: ClassVar[AgentRunnerContextPolicy | Mapping[str, Any]] = {}
    config_schema: ClassVar[Sequence[DynamicFormItemSchema | Mapping[str, Any]]] = ()
    host_only: ClassVar[bool] = False
    """Its agents act on the machine it runs on (a shell, a coding harness): only whoever runs the host makes them."""
    metadata: ClassVar[Mapping[str, Any]] = {}
    bootstrap: ClassVar[Literal["none", "recent_tail"]] = "none"
    """`recent_tail`: the last items of the conversation are fetched into `ctx.recent_tail` before `run()`."""
    bootstrap_limit: ClassVar[int] = 20

    def tail_length(self, ctx: RunContext) -> int:  # noqa: ARG002 - for those who let an agent's owner say
        """How many items that is at most."""
        return self.bootstrap_limit

    def run(self, ctx: RunContext, api: HostApi) -> Results:  # noqa: ARG002 - the signature to write
        """Answer one event: `async def run(self, ctx, api)` with `yield delta(...)`, `yield message(...)` and so on."""
        raise TypeError(
            f"{type(self).__name__} has no run(); write `async def run(self, ctx, api)` that yields results"
        )

    def manifest(self, plugin: PluginInfo) -> AgentRunnerManifest:
        """Build the manifest for the host. Raises ValueError when an attribute does not fit."""
        return AgentRunnerManifest.from_wire(
            {
                "id": str(RunnerId(plugin.author, plugin.name, self.name)),
                "name": self.name,
                "label": self.label or type(self).__name__,
                "description": self.description or None,
                "capabilities": self.capabilities,
                "permissions": self._permissions(),
                "context": self.context,
                "config_schema": list(self.config_schema),
                "host_only": self.host_only,
                "metadata": dict(self.metadata),
            }
        )

    def _permissions(self) -> AgentRunnerPermissions:
        """Asking for a recent tail is asking for `history.page`; the manifest says so without being told twice."""
        asked = AgentRunnerPermissions.from_wire(self.permissions)
        if self.bootstrap == "none" or "page" in asked.history:
            return asked
        return asked.model_copy(update={"history": [*asked.history, "page"]})
