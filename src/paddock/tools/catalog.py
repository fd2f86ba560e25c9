"""All tools of this host, joined from their sources. The `Tools` port. Of two with one name the earlier source wins."""

from collections.abc import Sequence

import structlog

from paddock.ports.tools import ToolAnswer, ToolInfo, Tools, ToolUse
from paddock.tools.answers import failed

log = structlog.get_logger("paddock.tools")


class ToolCatalog:
    def __init__(self, sources: Sequence[Tools]) -> None:
        self._sources = tuple(sources)

    def list(self, workspace: str) -> Sequence[ToolInfo]:
        found: dict[str, ToolInfo] = {}
        for source in self._sources:
            for tool in source.list(workspace):
                found.setdefault(tool.name, tool)
        return [*found.values()]

    def find(self, workspace: str, name: str) -> ToolInfo | None:
        return next((tool for source in self._sources if (tool := source.find(workspace, name))), None)

    async def call(self, use: ToolUse) -> ToolAnswer:
        source = next((one for one in self._sources if one.find(use.workspace_id, use.name)), None)
        if source is None:
            return failed(f"the tool {use.name} is not there any more")
        try:
            return await source.call(use)
        except Exception:
            log.exception("a source of tools failed", action="tools.call", tool=use.name, run_id=use.run_id)
            text = f"the host failed while {use.name} was at work; whether it did its work is not known"
            return failed(text, unknown=True)
