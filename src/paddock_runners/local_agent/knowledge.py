"""Passages of the knowledge bases the run may search: looked up for every message, or when the model asks."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock_runners.toolkit.calls import Offer, Outcome
from paddock_runners.toolkit.language import speaks_chinese
from paddock_sdk import HostApi, HostCallError, RunContext
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED
from paddock_sdk.protocol.history import RetrievalResultEntry

log = logging.getLogger("paddock.local_agent")

MAX_BASES = 8
MAX_PASSAGE_CHARS = 2000
MAX_QUERY_CHARS = 1000
TOOL = "search_knowledge"


@dataclass(slots=True)
class Knowledge:
    """The bases of one run, and what was found in them so far."""

    ctx: RunContext
    api: HostApi
    top_k: int
    sources: list[str] = field(default_factory=list[str])
    """Where the passages shown to the model are from, each once."""

    @property
    def bases(self) -> list[str]:
        there = self.ctx.resources.knowledge_bases
        return [base.kb_id for base in there if "retrieve" in base.operations][:MAX_BASES]

    async def passages(self, query: str) -> str:
        """Passages that fit the query, each with its place; empty when nothing does."""
        found = await asyncio.gather(*(self._ask(base, query[:MAX_QUERY_CHARS]) for base in self.bases))
        lines = [self._told(number, entry) for number, entry in enumerate(_merged(found), 1)]
        if not lines:
            return ""
        return "(Passages that may help; name their source when you use one.)\n" + "\n".join(lines)

    def tool(self) -> Offer:
        parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return Offer(TOOL, "Search the knowledge bases for passages about something.", parameters, own=self._search)

    def ui_hints(self) -> dict[str, Any] | None:
        title = "来源" if speaks_chinese(self.ctx) else "Sources"
        return {"kind": "list", "title": title, "items": list(self.sources)} if self.sources else None

    async def _search(self, arguments: Mapping[str, Any]) -> Outcome:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return Outcome(error=f"{TOOL} needs a query: what to look for, in words")
        return Outcome(await self.passages(query) or "nothing was found")

    async def _ask(self, base: str, query: str) -> list[RetrievalResultEntry]:
        """A base that cannot be searched gives nothing; the answer is not lost for it."""
        if not query.strip():
            return []
        try:
            return await self.api.knowledge.retrieve(base, query, top_k=self.top_k)
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            log.warning("run %s: knowledge base %s: %s", self.ctx.run_id, base, error)
            return []

    def _told(self, number: int, entry: RetrievalResultEntry) -> str:
        source = _source(entry)
        if source not in self.sources:
            self.sources.append(source)
        text = "".join(element.text or "" for element in entry.content)[:MAX_PASSAGE_CHARS]
        return f"[{number}] {source}: {text}"


def _source(entry: RetrievalResultEntry) -> str:
    """The document and the place in it, as far as the base tells."""
    about = entry.metadata
    places = (about.get("heading"), f"page {about['page']}" if about.get("page") else None)
    return ", ".join(str(part) for part in (about.get("document") or entry.id, *places) if part)


def _merged(found: Sequence[Sequence[RetrievalResultEntry]]) -> list[RetrievalResultEntry]:
    """One from each base in turn: scores of different bases cannot be compared."""
    longest = max((len(entries) for entries in found), default=0)
    return [entries[rank] for rank in range(longest) for entries in found if rank < len(entries)]
