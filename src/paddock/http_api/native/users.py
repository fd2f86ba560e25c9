"""The caller themselves: who they are here and what they set, `GET` and `PATCH /users/me`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.people.principals import Principal
from paddock.host.people.users import Users
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_object
from paddock.http_api.edge.routing import route
from paddock.http_api.native.time_zones import is_time_zone
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import UserRow

_LOCALE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}", re.ASCII)


class UsersDoor:
    def __init__(self, *, auth: Auth, users: Users) -> None:
        self._auth = auth
        self._users = users

    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", "/api/v1/users/me", self.get), route("PATCH", "/api/v1/users/me", self.patch)]

    async def get(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        return json_response(_seen(principal, await self._users.profile(principal)))

    async def patch(self, request: Request) -> Response:
        """What is given is set, null takes it back, what is left out stays."""
        principal = await self._auth.principal(request.scope)
        given = _inner(
            _inner(await read_object(request, ("profile",)), "profile", ("settings",)), "settings", _SETTINGS
        )
        known = await self._users.profile(principal)
        zone, locale = given.get("timezone", known.time_zone), given.get("locale", known.locale)
        _check(zone, locale)
        return json_response(_seen(principal, await self._users.change(principal, time_zone=zone, locale=locale)))


_SETTINGS = ("timezone", "locale")


def _inner(given: Mapping[str, Any], name: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    value = given.get(name, {})
    if not isinstance(value, dict):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be an object")
    strange = [key for key in cast("dict[str, Any]", value) if key not in known]
    if strange:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} has no {strange[0][:64]!r}; known are {', '.join(known)}")
    return cast("dict[str, Any]", value)


def _check(zone: object, locale: object) -> None:
    if zone is not None and not (isinstance(zone, str) and is_time_zone(zone)):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "timezone must be the name of an IANA zone, such as Europe/Oslo")
    if locale is not None and not (isinstance(locale, str) and len(locale) <= 35 and _LOCALE.fullmatch(locale)):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "locale must be a language tag, such as en or zh-CN")


def _seen(principal: Principal, row: UserRow) -> Mapping[str, Any]:
    return {
        "userId": principal.user_id,
        "workspaceId": principal.workspace_id,
        "role": principal.role,
        "profile": {"settings": {"timezone": row.time_zone, "locale": row.locale}},
    }
