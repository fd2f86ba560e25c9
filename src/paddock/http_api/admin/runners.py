"""Runners: which there are and how they are, read once more, and let in from elsewhere by a token."""

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from paddock.host.cluster.attaching import Attaching
from paddock.host.people.principals import Principal
from paddock.http_api.admin.attach import AttachingGateway
from paddock.http_api.admin.keys import MAX_NAME, PrintableName, decided
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import NOT_FOUND, Operations, operation
from paddock.http_api.edge.shapes import Answer, Body, Json, about
from paddock.ports import RunnerStatus
from paddock.rules.cluster.attach_addresses import PATH, TOKENS
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


class RunnersDoor(Operations):
    group = "Agents"

    def __init__(
        self,
        *,
        auth: Auth,
        gateway: AttachingGateway,
        attaching: Attaching,
        note: Callable[[AuditRow], None] = lambda _row: None,
        claimed: Callable[[str], bool] = lambda _plugin: False,
    ) -> None:
        """`claimed`: plugins that agents of whoever runs the host rely on; only they attach another in their place."""
        self.auth = auth
        self._gateway = gateway
        self._attaching = attaching
        self._note = note
        self._claimed = claimed

    @operation("GET", BASE, answers={200: "And how they are."})
    async def runners(self, who: Principal) -> RunnerList:
        """List the runners there are"""
        listed = await self._gateway.list_runners(who.workspace_id)
        return RunnerList([_seen(status, for_operator=who.operator) for status in listed])

    @operation(
        "POST",
        f"{BASE}/{{author}}/{{name}}/refresh",
        role="operator",
        answers={200: "Its runners, as they are now."},
        errors=[NOT_FOUND],
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
        self._note(decided(who, "runners.refresh", plugin[:MAX_NAME], allowed=who.operator))
        if not who.operator:
            raise HostError(ErrorCode.UNAUTHORIZED, "only whoever runs the host has a plugin's manifests read again")
        listed = await self._gateway.refresh(plugin, who.workspace_id)
        return RunnerList([_seen(status, for_operator=True) for status in listed])

    @operation("POST", TOKENS, role="admin", answers={201: "A token, good once and for a minute."})
    async def mint_attach_token(self, who: Principal, body: NewAttachToken) -> AttachToken:
        """Let a runner attach from elsewhere"""
        plugin = f"{body.author}/{body.name}"
        allowed = who.operator or not self._claimed(plugin)
        self._note(decided(who, "runners.attach_token", plugin, allowed=allowed))
        if not allowed:
            raise HostError(ErrorCode.UNAUTHORIZED, CLAIMED)
        permissions = None if body.permissions is UNSET else body.permissions
        token = await self._attaching.mint(who.workspace_id, body.author, body.name, permissions, by=who.credential)
        return AttachToken(token, PATH)


def _seen(status: RunnerStatus, *, for_operator: bool) -> Runner:
    manifest = status.manifest
    told: Json = {
        "detail": status.detail,
        "pid": status.pid,
        "failing": status.failing or None,
        "unhealthy_for": [*status.unhealthy_for] or None,
    }
    return Runner(
        runner_id=status.runner_id,
        plugin=status.plugin,
        state=status.state,
        isolation=status.isolation,
        manifest=manifest.model_dump(mode="json", exclude_none=True) if manifest else None,
        **(told if for_operator else {}),
    )
