"""Host calls as Python methods, in groups. The host checks every call; nothing is checked here."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from paddock_sdk.calls import Answer, HostStream, RunCalls
from paddock_sdk.host_call_error import host_call_error
from paddock_sdk.protocol.artifacts import ArtifactMetadata, ArtifactReadResult
from paddock_sdk.protocol.history import (
    AgentEventRecord,
    EventPage,
    HistoryPage,
    HistorySearchResult,
    RetrievalResultEntry,
    SteeringInputItem,
    SteeringPullResult,
)
from paddock_sdk.protocol.host_calls import (
    KnowledgeRetrieveResult,
    ModelsInvokeResult,
    ModelsRerankResult,
    ModelsStreamChunk,
    PlatformRequestActionResult,
    RerankEntry,
    StorageListResult,
    ToolDetail,
    ToolsCallResult,
)
from paddock_sdk.protocol.manifest import StorageArea
from paddock_sdk.protocol.messages import LLMTool, Message
from paddock_sdk.protocol.model import WireModel
from paddock_sdk.protocol.results import StateScope
from paddock_sdk.secrets import NO_SECRETS

__all__ = ["HostApi", "HostStream"]

PART_BYTES = 2 * 1024 * 1024
"""How much of a storage value one call carries."""
ATTEMPTS = 5

Messages = Sequence[Message | Mapping[str, Any]]
Tools = Sequence[LLMTool | Mapping[str, Any]]
Json = Mapping[str, Any]
M = TypeVar("M", bound=WireModel)


def _said(**arguments: Any) -> dict[str, Any]:
    """Arguments that were given; an optional one that is None stays off the wire."""
    return {name: value for name, value in arguments.items() if value is not None}


def _understood(method: str, answer: type[M], said: Answer) -> M:
    try:
        return answer.from_wire(said)
    except ValidationError as error:
        raise host_call_error(method, message="the host's answer cannot be read") from error


class _Group:
    __slots__ = ("_calls",)

    def __init__(self, calls: RunCalls) -> None:
        self._calls = calls

    async def _ask(self, method: str, answer: type[M], params: Json) -> M:
        return _understood(method, answer, await self._calls.call(method, params))


class ModelsApi(_Group):
    async def invoke(
        self, model_id: str, messages: Messages, tools: Tools | None = None, extra_args: Json | None = None
    ) -> ModelsInvokeResult:
        params = _said(model_id=model_id, messages=messages, tools=tools, extra_args=extra_args)
        return await self._ask("models.invoke", ModelsInvokeResult, params)

    def stream(
        self, model_id: str, messages: Messages, tools: Tools | None = None, extra_args: Json | None = None
    ) -> HostStream[ModelsStreamChunk]:
        """Chunks as they come; usage is in the last chunk or in `stream.result`."""
        params = _said(model_id=model_id, messages=messages, tools=tools, extra_args=extra_args)
        return self._calls.stream("models.stream", params, partial(_understood, "models.stream", ModelsStreamChunk))

    async def rerank(
        self, model_id: str, query: str, documents: Sequence[str], top_k: int | None = None
    ) -> list[RerankEntry]:
        params = _said(model_id=model_id, query=query, documents=documents, top_k=top_k)
        return (await self._ask("models.rerank", ModelsRerankResult, params)).results


class ToolsApi(_Group):
    async def get_detail(self, tool_name: str) -> ToolDetail:
        return await self._ask("tools.get_detail", ToolDetail, {"tool_name": tool_name})

    async def call(self, tool_name: str, parameters: Json) -> ToolsCallResult:
        return await self._ask("tools.call", ToolsCallResult, {"tool_name": tool_name, "parameters": parameters})


class KnowledgeApi(_Group):
    async def retrieve(
        self, kb_id: str, query_text: str, top_k: int = 5, filters: Json | None = None
    ) -> list[RetrievalResultEntry]:
        params = _said(kb_id=kb_id, query_text=query_text, top_k=top_k, filters=filters)
        return (await self._ask("knowledge.retrieve", KnowledgeRetrieveResult, params)).results


class HistoryApi(_Group):
    async def page(
        self,
        conversation_id: str | None = None,
        before_cursor: str | None = None,
        after_cursor: str | None = None,
        limit: int = 50,
        direction: Literal["backward", "forward"] = "backward",
        include_artifacts: bool = False,
        thread_id: str | None = None,
    ) -> HistoryPage:
        """One page of the transcript; `backward` gives the newest first. What was said before this run began is before
        `ctx.context.latest_cursor`."""
        params = _said(
            conversation_id=conversation_id,
            before_cursor=before_cursor,
            after_cursor=after_cursor,
            limit=limit,
            direction=direction,
            include_artifacts=include_artifacts,
            thread_id=thread_id,
        )
        found = await self._ask("history.page", HistoryPage, params)
        return found.model_copy(update={"items": [item.with_text() for item in found.items]})

    async def search(
        self, query: str, filters: Json | None = None, top_k: int = 10, before_cursor: str | None = None
    ) -> HistorySearchResult:
        """Items that have every word of the query, the newest first; `next_cursor` of one answer goes on with it."""
        params = _said(query=query, filters=filters, top_k=top_k, before_cursor=before_cursor)
        found = await self._ask("history.search", HistorySearchResult, params)
        return found.model_copy(update={"items": [item.with_text() for item in found.items]})


class EventsApi(_Group):
    async def get(self, event_id: str) -> AgentEventRecord:
        return await self._ask("events.get", AgentEventRecord, {"event_id": event_id})

    async def page(self, before_cursor: str | None = None, limit: int = 50) -> EventPage:
        return await self._ask("events.page", EventPage, _said(before_cursor=before_cursor, limit=limit))


class ArtifactsApi(_Group):
    async def metadata(self, artifact_id: str) -> ArtifactMetadata:
        return await self._ask("artifacts.metadata", ArtifactMetadata, {"artifact_id": artifact_id})

    async def read_range(self, artifact_id: str, offset: int = 0, length: int = 65536) -> ArtifactReadResult:
        """One range; its bytes are in `.content`."""
        params = {"artifact_id": artifact_id, "offset": offset, "length": length}
        return await self._ask("artifacts.read_range", ArtifactReadResult, params)

    def open_stream(self, artifact_id: str) -> HostStream[bytes]:
        return self._calls.stream("artifacts.open_stream", {"artifact_id": artifact_id}, _content_of)

    async def create(
        self,
        content: bytes,
        artifact_type: str = "file",
        mime_type: str | None = None,
        name: str | None = None,
        metadata: Json | None = None,
    ) -> ArtifactMetadata:
        """Store a file; mention it with `artifact_created(type, artifact_id=...)`. Paddock's own, optional."""
        encoded = b64encode(content).decode()
        params = _said(
            content_base64=encoded, artifact_type=artifact_type, mime_type=mime_type, name=name, metadata=metadata
        )
        return await self._ask("artifacts.create", ArtifactMetadata, params)


class StateApi(_Group):
    """Small JSON values. Plain dictionaries on purpose: these are the calls made most often."""

    async def get(self, scope: StateScope, key: str, default: Any = None) -> Any:
        """The value, or `default` when nothing is kept under that key."""
        said = await self._calls.call("state.get", {"scope": scope, "key": key})
        return said.get("value") if said.get("found") else default

    async def get_with_version(self, scope: StateScope, key: str, default: Any = None) -> tuple[Any, str]:
        """The value and its version, for a `set` that must not overwrite somebody else's. Paddock's own, optional."""
        said = await self._calls.call("state.get", {"scope": scope, "key": key})
        return (said.get("value"), said.get("version") or "") if said.get("found") else (default, "")

    async def set(
        self, scope: StateScope, key: str, value: object, *, expected_version: str | None = None
    ) -> str | None:
        """Keep a value; the version it has now.

        With `expected_version` only if the value there still has it ("" means there is none yet); else HostCallError
        with code invalid_argument, retryable. Versions are Paddock's own, optional.
        """
        params = {"scope": scope, "key": key, "value": value}
        if expected_version is not None:
            params["expected_version"] = expected_version
        return (await self._calls.call("state.set", params)).get("version")

    async def delete(self, scope: StateScope, key: str) -> bool:
        """Delete a value; return False if there was none."""
        return bool((await self._calls.call("state.delete", {"scope": scope, "key": key})).get("deleted"))


class StorageApi(_Group):
    """Bytes, for what is too large for state."""

    async def get(self, area: StorageArea, key: str) -> bytes | None:
        """The value, read in parts when one answer cannot carry it."""
        for _ in range(ATTEMPTS):
            first = await self._calls.call("storage.get", {"area": area, "key": key})
            if not first.get("found"):
                return None
            whole = await self._rest(area, key, first)
            if whole is not None:
                return whole
        raise host_call_error("storage.get", message="the value kept changing while it was read")

    async def _rest(self, area: StorageArea, key: str, first: Answer) -> bytes | None:
        """The value that `first` begins; None when it was replaced meanwhile."""
        whole, said = b64decode(first.get("value_base64") or ""), first
        while said.get("has_more"):
            said = await self._calls.call("storage.get", {"area": area, "key": key, "offset": len(whole)})
            if said.get("version") != first.get("version"):
                return None
            whole += b64decode(said.get("value_base64") or "")
        return whole

    async def set(self, area: StorageArea, key: str, value: bytes) -> None:
        """Keep a value; a large one is sent in parts and becomes the value with the last."""
        offset = 0
        while True:
            part = value[offset : offset + PART_BYTES]
            params: dict[str, Any] = {"area": area, "key": key, "value_base64": b64encode(part).decode()}
            more = offset + len(part) < len(value)
            if offset or more:
                params |= {"offset": offset, "more": more}
            await self._calls.call("storage.set", params)
            if not more:
                return
            offset += len(part)

    async def delete(self, area: StorageArea, key: str) -> bool:
        """Delete a blob; return False if there was none."""
        return bool((await self._calls.call("storage.delete", {"area": area, "key": key})).get("deleted"))

    async def list(
        self, area: StorageArea, prefix: str | None = None, *, after: str | None = None
    ) -> StorageListResult:
        """Keys in order; while `has_more`, go on with `after` = the last one (Paddock's own, optional)."""
        return await self._ask("storage.list", StorageListResult, _said(area=area, prefix=prefix, after=after))


class SteeringApi(_Group):
    async def pull(self, limit: int | None = None) -> list[SteeringInputItem]:
        """Input that arrived since this run began; each is handed over once. Paddock's own, optional."""
        self._calls.steering.clear()
        return (await self._ask("steering.pull", SteeringPullResult, _said(limit=limit))).items

    async def wait(self, seconds: float) -> bool:
        """Wait until input is there to `pull`; return False when none came in this time."""
        if self._calls.steering.is_set() or seconds <= 0:
            return self._calls.steering.is_set()
        try:
            await asyncio.wait_for(self._calls.steering.wait(), seconds)
        except TimeoutError:
            return False
        return True


class PlatformApi(_Group):
    async def request_action(self, action: str, target: Json, payload: Json) -> PlatformRequestActionResult:
        params = {"action": action, "target": target, "payload": payload}
        return await self._ask("platform.request_action", PlatformRequestActionResult, params)


def _content_of(chunk: Answer) -> bytes:
    return b64decode(chunk.get("content_base64") or "")


class HostApi:
    """The host, seen from one run. Every call ends by the run's deadline and raises HostCallError when refused."""

    __slots__ = (
        "_calls",
        "artifacts",
        "events",
        "history",
        "knowledge",
        "models",
        "platform",
        "secrets",
        "state",
        "steering",
        "storage",
        "tools",
    )

    def __init__(self, calls: RunCalls, secrets: Mapping[str, str] = NO_SECRETS) -> None:
        self._calls = calls
        self.secrets = secrets
        """What this run may know and nobody may keep, such as `mcp_token`. Paddock's own, optional."""
        self.models = ModelsApi(calls)
        self.tools = ToolsApi(calls)
        self.knowledge = KnowledgeApi(calls)
        self.history = HistoryApi(calls)
        self.events = EventsApi(calls)
        self.artifacts = ArtifactsApi(calls)
        self.state = StateApi(calls)
        self.storage = StorageApi(calls)
        self.steering = SteeringApi(calls)
        self.platform = PlatformApi(calls)

    def seconds_left(self) -> float:
        """Until the run's deadline, on this machine's clock; never negative."""
        return max(0.0, self._calls.deadline - asyncio.get_running_loop().time())
