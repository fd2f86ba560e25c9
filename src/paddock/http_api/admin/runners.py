"""Runners: which there are and how they are, read once more, and let in from elsewhere by a token."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from paddock.host.cluster.attaching import Attaching
from paddock.host.people.principals import Principal
from paddock.http_api.admin.attach import AttachingGateway
from paddock.http_api.admin.keys import MAX_NAME, PrintableName, decided
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.shapes import Answer, Body, Json, about, seen
from paddock.ports import RunnerStatus
from paddock.rules.agents.addresses import PATH, TOKENS
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

BASE = "/api/v1/runners"
CLAIMED = "this plugin is installed here, or the agents file names it: only whoever runs the host attaches it"


class Runner(Answer):
    """A runner. What went wrong inside, in its own words, is for whoever runs the host."""

    runner_id: str
    plugin: str
    state: Annotated[Literal["stopped", "starting", "ready", "unhealthy", "attached"], about(example="ready")]
    isolation: Annotated[str, about(example="L0")]
    manifest: Json | None = None
    detail: str | None = None
    pid: int | None = None
    failing: bool | None = None
    unhealthy_for: list[str] | None = None


class RunnerList(Answer):
    runners: list[Runner]


class NewAttachToken(Body):
    author: PrintableName
    name: PrintableName
    permissions: Annotated[Json, about(must="be an object, or left out")] | UnsetType = UNSET


class AttachToken(Answer):
    token: Annotated[str, about(example="...")]
    path: Annotated[str, about(example=PATH)]


@dataclass(frozen=True, kw_only=True)
class RunnersDoor(Operations):
    group = "Agents"
    auth: Auth
    gateway: AttachingGateway
    attaching: Attaching
    note: Callable[[AuditRow], None] = lambda _row: None
    claimed: Callable[[str], bool] = lambda _plugin: False

    @operation("GET", BASE, {200: "And how they are."})
    async def runners(self, who: Principal) -> RunnerList:
        """List the runners there are"""
        listed = await self.gateway.list_runners(who.workspace_id)
        return RunnerList([_seen(status, for_operator=who.operator) for status in listed])

    @operation(
        "POST",
        f"{BASE}/{{author}}/{{name}}/refresh",
        {200: "Its runners, as they are now."},
        role="operator",
        errors=(404,),
    )
    async def refresh_runner(
        self,
        who: Principal,
        author: Annotated[str, about("Of the plugin.", example="paddock")],
        name: Annotated[str, about("Of the plugin.", example="echo")],
    ) -> RunnerList:
        """Read what a plugin offers once more

        The program is everybody's, so only whoever runs the host asks."""
        plugin = f"{author}/{name}"
        self.note(decided(who, "runners.refresh", plugin[:MAX_NAME], allowed=who.operator))
        if not who.operator:
            raise HostError(ErrorCode.UNAUTHORIZED, "only whoever runs the host has a plugin's manifests read again")
        listed = await self.gateway.refresh(plugin, who.workspace_id)
        return RunnerList([_seen(status, for_operator=True) for status in listed])

    @operation("POST", TOKENS, {201: "A token, good once and for a minute."}, role="admin")
    async def mint_attach_token(self, who: Principal, body: NewAttachToken) -> AttachToken:
        """Let a runner attach from elsewhere"""
        plugin = f"{body.author}/{body.name}"
        allowed = who.operator or not self.claimed(plugin)
        self.note(decided(who, "runners.attach_token", plugin, allowed=allowed))
        if not allowed:
            raise HostError(ErrorCode.UNAUTHORIZED, CLAIMED)
        permissions = None if body.permissions is UNSET else body.permissions
        token = await self.attaching.mint(who.workspace_id, body.author, body.name, permissions, by=who.credential)
        return AttachToken(token, PATH)


def _seen(status: RunnerStatus, *, for_operator: bool) -> Runner:
    manifest = status.manifest.model_dump(mode="json", exclude_none=True) if status.manifest else None
    inside = {"failing": status.failing or None, "unhealthy_for": [*status.unhealthy_for] or None}
    hidden = dict.fromkeys(("detail", "pid", "failing", "unhealthy_for"))
    return seen(Runner, status, manifest=manifest, **(inside if for_operator else hidden))
