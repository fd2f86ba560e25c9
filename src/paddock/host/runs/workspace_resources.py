"""Resources of a workspace that runs can be granted: models, tools, knowledge bases and their files.

The same object is returned until something changes, so that results computed from it can be cached.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from paddock.ports.knowledge import Knowledge, KnowledgeBaseInfo, KnowledgeFile
from paddock.ports.models import ModelInfo, Models
from paddock.ports.tools import ToolInfo, Tools
from paddock.rules.agents.resources import (
    NOTHING_OFFERED,
    Offered,
    OfferedFile,
    place_of_model,
)
from paddock.rules.errors import HostError, StorageUnavailableError

log = structlog.get_logger("paddock.offers")

BASES_SECONDS = 1.0
"""Seconds that a list of knowledge bases is used: reading it is a query, and every run needs it."""
MAX_WORKSPACES = 1024

_Known = tuple[tuple[KnowledgeBaseInfo, ...], tuple[KnowledgeFile, ...]]
_Lists = tuple[tuple[ModelInfo, ...], tuple[ToolInfo, ...], _Known]
NO_KNOWLEDGE: _Known = ((), ())


@dataclass(kw_only=True, eq=False)
class WorkspaceResources:
    models: Models | None = None
    tools: Tools | None = None
    knowledge: Knowledge | None = None
    clock: Callable[[], float]
    default_model: str = ""
    """The resources of agents that name none."""
    _known: dict[str, tuple[_Lists, Offered]] = field(default_factory=dict[str, tuple[_Lists, Offered]], init=False)
    _bases: dict[str, tuple[float, _Known]] = field(default_factory=dict[str, tuple[float, _Known]], init=False)
    _want_files: set[str] = field(default_factory=set[str], init=False)
    """Workspaces with an agent whose runner asks for the files of knowledge bases; only these are listed."""

    def known(self, workspace: str) -> Offered:
        """Resources as of the last refresh."""
        known = self._known.get(workspace)
        return NOTHING_OFFERED if known is None else known[1]

    async def refresh(self, workspace: str, *, files: bool = False) -> Offered:
        """Read the resources again; with `files` also the files of its knowledge bases, from now on."""
        if files and workspace not in self._want_files:
            if len(self._want_files) >= MAX_WORKSPACES:
                self._want_files.clear()
            self._want_files.add(workspace)
            self.forget(workspace)
        lists: _Lists = (  # copies, because a plug may change its own in place
            tuple(self.models.list(workspace)) if self.models is not None else (),
            tuple(self.tools.list(workspace)) if self.tools is not None else (),
            await self._list_bases(workspace),
        )
        known = self._known.get(workspace)
        if known is not None and known[0] == lists:
            return known[1]
        if len(self._known) >= MAX_WORKSPACES:
            self._known.clear()
        offered = _offered(lists, self.default_model)
        self._known[workspace] = (lists, offered)
        return offered

    def forget(self, workspace: str) -> None:
        """Read again at the next run, because a knowledge base was added or removed."""
        self._bases.pop(workspace, None)

    async def _list_bases(self, workspace: str) -> _Known:
        if self.knowledge is None:
            return NO_KNOWLEDGE
        at, known = self._bases.get(workspace, (0.0, NO_KNOWLEDGE))
        if workspace in self._bases and 0 <= self.clock() - at < BASES_SECONDS:
            return known
        try:
            bases = tuple(await self.knowledge.bases(workspace))
            wanted = bases and workspace in self._want_files
            known = (bases, tuple(await self.knowledge.files(workspace)) if wanted else ())
        except (HostError, StorageUnavailableError) as error:
            log.warning(
                "knowledge bases cannot be listed", action="offers.look", workspace=workspace, reason=str(error)
            )
            return known
        if len(self._bases) >= MAX_WORKSPACES:
            self._bases.clear()
        self._bases[workspace] = (self.clock(), known)
        return known


def _offered(lists: _Lists, default_model: str) -> Offered:
    """Return the resources in a stable order, so that models see the same list while nothing changes."""
    models, tools, (bases, files) = lists

    def place(one: ModelInfo) -> tuple[bool, bool, float, str]:
        price = None if one.prices is None else one.prices.prompt + one.prices.completion
        return place_of_model(one.model_id, price, default_model)

    return Offered(
        models=tuple(sorted(models, key=place)),
        tools=tuple(sorted(tools, key=lambda one: one.name)),
        bases=tuple(sorted(bases, key=lambda one: one.kb_id)),
        files=tuple(
            OfferedFile(one.file_id, one.name, one.media_type, one.kb_id)
            for one in sorted(files, key=lambda one: (one.kb_id, one.name, one.file_id))
        ),
    )
