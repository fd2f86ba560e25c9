"""What there is and who may come in: runners, API keys, tokens for runners that attach from elsewhere."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.cluster.attaching import Attaching
from paddock.host.people.api_keys import new_key
from paddock.host.people.principals import DEV, Principal
from paddock.host.people.taking_over import TakingOver
from paddock.http_api.admin.attach import AttachingGateway
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_object
from paddock.http_api.edge.routing import route
from paddock.http_api.native.runs import iso
from paddock.ports import ApiKeyRow, ApiKeys, RunnerStatus
from paddock.rules.cluster.attach_addresses import PATH, TOKENS
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

MAX_NAME = 128
TAKE_OVER = "/api/v1/take-over"
CLAIMED = "this plugin is installed here, or the agents file names it: only whoever runs the host attaches it"


class AdminDoor:
    def __init__(
        self,
        *,
        auth: Auth,
        gateway: AttachingGateway,
        attaching: Attaching,
        keys: ApiKeys,
        note: Callable[[AuditRow], None] = lambda _row: None,
        claimed: Callable[[str], bool] = lambda _plugin: False,
        taking_over: TakingOver,
    ) -> None:
        """`claimed`: plugins that agents of whoever runs the host rely on; only they attach another in their place."""
        self._claimed = claimed
        self._taking_over = taking_over
        self._note = note
        self._auth = auth
        self._gateway = gateway
        self._attaching = attaching
        self._keys = keys

    def routes(self) -> Sequence[BaseRoute]:
        return [
            route("GET", "/api/v1/runners", self.runners),
            route("POST", "/api/v1/runners/{author}/{name}/refresh", self.refresh_runner),
            route("POST", TOKENS, self.mint_attach_token),
            route("GET", "/api/v1/api-keys", self.keys),
            route("POST", "/api/v1/api-keys", self.create_key),
            route("DELETE", "/api/v1/api-keys/{key}", self.revoke_key),
            route("GET", TAKE_OVER, self.waiting),
            route("POST", TAKE_OVER, self.take_over),
        ]

    async def runners(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        listed = await self._gateway.list_runners(principal.workspace_id)
        return json_response({"runners": [_runner(status, for_operator=principal.operator) for status in listed]})

    async def refresh_runner(self, request: Request) -> Response:
        """Read what a plugin offers once more; the program is everybody's, so only whoever runs the host asks."""
        principal = await self._auth.admin(request.scope)
        plugin = f"{request.path_params['author']}/{request.path_params['name']}"
        self._note(_decided(principal, "runners.refresh", plugin[:MAX_NAME], allowed=principal.operator))
        if not principal.operator:
            raise HostError(ErrorCode.UNAUTHORIZED, "only whoever runs the host has a plugin's manifests read again")
        listed = await self._gateway.refresh(plugin, principal.workspace_id)
        return json_response({"runners": [_runner(status, for_operator=True) for status in listed]})

    async def mint_attach_token(self, request: Request) -> Response:
        principal = await self._auth.admin(request.scope)
        given = await read_object(request, ("author", "name", "permissions"))
        author, name = _name(given, "author"), _name(given, "name")
        if given.get("permissions", {}) is None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "permissions must be an object, or left out")
        allowed = principal.operator or not self._claimed(f"{author}/{name}")
        self._note(_decided(principal, "runners.attach_token", f"{author}/{name}", allowed=allowed))
        if not allowed:
            raise HostError(ErrorCode.UNAUTHORIZED, CLAIMED)
        token = await self._attaching.mint(
            principal.workspace_id, author, name, given.get("permissions"), by=principal.credential
        )
        return json_response({"token": token, "path": PATH}, 201)

    async def keys(self, request: Request) -> Response:
        """The keys of the caller's workspace; whoever runs the host sees all. Never a key itself."""
        principal = await self._auth.admin(request.scope)
        rows = await self._keys.api_keys(None if principal.operator else principal.workspace_id)
        return json_response({"keys": [_key(row) for row in rows]})

    async def revoke_key(self, request: Request) -> Response:
        """204 when nobody is let in with it any more, also when that was so already."""
        principal = await self._auth.admin(request.scope)
        rows = await self._keys.api_keys(None if principal.operator else principal.workspace_id, limit=100_000)
        row = next((row for row in rows if row.key_id == request.path_params["key"]), None)
        if row is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such key")
        await self._keys.revoke_key(
            row.key_id, time.time(), _decided(principal, "api_keys.revoke", row.key_id, allowed=True)
        )
        self._auth.key_revoked(row)
        return Response(status_code=204)

    async def create_key(self, request: Request) -> Response:
        """The key is in this answer and nowhere else; only its hash is kept."""
        principal = await self._auth.admin(request.scope)
        given = await read_object(request, ("user", "workspace", "role"))
        role = given.get("role", "user")
        if role not in ("user", "admin"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "role must be user or admin")
        workspace = _name(given, "workspace") if "workspace" in given else principal.workspace_id
        user = _name(given, "user")
        refusal = self._why_not(principal, workspace, user)
        self._note(_decided(principal, "api_keys.create", f"{workspace}/{user}", allowed=refusal is None))
        if refusal is not None:
            raise HostError(ErrorCode.UNAUTHORIZED, refusal)
        key, row = new_key(workspace, user, cast("Any", role))
        await self._keys.add_key(row)
        self._auth.key_added()
        seen = {"keyId": row.key_id, "key": key, "workspace": row.workspace_id, "user": row.user_id, "role": row.role}
        return json_response(seen, 201)

    async def waiting(self, request: Request) -> Response:
        """What is there to take over."""
        found = await self._taking_over.waiting(await self._auth.admin(request.scope))
        seen = {"conversations": found.conversations, "automations": found.automations}
        return json_response({"user": DEV.user_id, "workspace": DEV.workspace_id, **seen})

    async def take_over(self, request: Request) -> Response:
        """Hand what `dev` has to a user. With `left` above 0 it is asked again."""
        principal = await self._auth.admin(request.scope)
        user = _name(await read_object(request, ("user",)), "user")
        if not principal.operator:
            self._note(_decided(principal, "user.take_over", user, allowed=False))
        taken = await self._taking_over.take_over(principal, user)
        return json_response({"conversations": taken.conversations, "busy": taken.busy, "left": taken.left})

    def _why_not(self, principal: Principal, workspace: str, user: str) -> str | None:
        """Why this caller makes no key for this user: a key is all that its user is."""
        if principal.operator:
            return None
        if principal.workspace_id != workspace:
            return "a key of this workspace makes keys for this workspace only"
        named = self._auth.operators.names(workspace, user)
        return "this user runs the host, and who does makes their keys" if named else None


def _decided(principal: Principal, action: str, resource: str, *, allowed: bool) -> AuditRow:
    return AuditRow(
        time=time.time(),
        workspace_id=principal.workspace_id,
        actor=f"user:{principal.user_id}",
        action=action,
        resource=resource,
        scope=principal.workspace_id,
        result="allowed" if allowed else "unauthorized",
        reason=f"role {principal.role}",
    )


def _name(given: Mapping[str, Any], field: str) -> str:
    value = given.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{field} must be a printable string of 1 to {MAX_NAME} characters")
    return value


def _key(row: ApiKeyRow) -> Mapping[str, Any]:
    seen = {
        "keyId": row.key_id,
        "workspace": row.workspace_id,
        "user": row.user_id,
        "role": row.role,
        "createdAt": iso(row.created_at),
        "revokedAt": iso(row.revoked_at),
    }
    return {key: value for key, value in seen.items() if value is not None}


def _runner(status: RunnerStatus, *, for_operator: bool) -> Mapping[str, Any]:
    """What everybody may know of a runner; what went wrong inside, in its own words, is for whoever runs the host."""
    manifest = status.manifest
    seen = {
        "runnerId": status.runner_id,
        "plugin": status.plugin,
        "state": status.state,
        "isolation": status.isolation,
        "detail": status.detail if for_operator else None,
        "pid": status.pid if for_operator else None,
        "failing": (status.failing or None) if for_operator else None,
        "unhealthyFor": list(status.unhealthy_for) or None if for_operator else None,
        "manifest": manifest.model_dump(mode="json", exclude_none=True) if manifest else None,
    }
    return {key: value for key, value in seen.items() if value is not None}
