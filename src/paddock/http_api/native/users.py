"""The caller themselves: who they are here and what they set."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from paddock.host.people.principals import Principal
from paddock.host.people.users import Users
from paddock.host.zones import is_time_zone
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.shapes import Answer, Body, about
from paddock.rules.rows.rows import UserRow

ME = "/api/v1/users/me"
_LOCALE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}", re.ASCII)


def _is_locale(text: str) -> bool:
    return len(text) <= 35 and _LOCALE.fullmatch(text) is not None


Zone = Annotated[
    str, about(must="be the name of an IANA zone, such as Europe/Oslo", check=is_time_zone, example="Asia/Shanghai")
]
Locale = Annotated[str, about(must="be a language tag, such as en or zh-CN", check=_is_locale, example="zh-CN")]


class Settings(Answer):
    timezone: Zone | None
    locale: Locale | None


class Profile(Answer):
    settings: Settings


class Me(Answer):
    """You, as this host knows you."""

    user_id: str
    workspace_id: str
    role: Literal["user", "admin"]
    profile: Profile


class SettingsChange(Body):
    """Null takes a setting back; one that is left out stays."""

    timezone: Zone | UnsetType | None = UNSET
    locale: Locale | UnsetType | None = UNSET


class ProfileChange(Body):
    settings: SettingsChange = msgspec.field(default_factory=SettingsChange)


class MeChange(Body):
    profile: ProfileChange = msgspec.field(default_factory=ProfileChange)


@dataclass(frozen=True, kw_only=True)
class UsersDoor(Operations):
    group = "People"
    auth: Auth
    users: Users

    @operation("GET", ME, {200: "You."})
    async def get(self, who: Principal) -> Me:
        """Say who you are here"""
        return _seen(who, await self.users.profile(who))

    @operation(
        "PATCH", ME, {200: "You, as you are now."}, example={"profile": {"settings": {"timezone": "Asia/Shanghai"}}}
    )
    async def patch(self, who: Principal, body: MeChange) -> Me:
        """Set your time zone and language"""
        given, known = body.profile.settings, await self.users.profile(who)
        zone = known.time_zone if given.timezone is UNSET else given.timezone
        locale = known.locale if given.locale is UNSET else given.locale
        return _seen(who, await self.users.change(who, time_zone=zone, locale=locale))


def _seen(who: Principal, row: UserRow) -> Me:
    settings = Settings(row.time_zone, row.locale)
    return Me(user_id=who.user_id, workspace_id=who.workspace_id, role=who.role, profile=Profile(settings))
