"""API keys: listed, made, revoked. And the hand-over of what `dev` said before there were any."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from msgspec import UNSET, UnsetType

from paddock.host.people.principals import DEV, Principal, new_key
from paddock.host.people.taking_over import TakingOver
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.shapes import Answer, Body, Count, Moment, about, seen
from paddock.ports import ApiKeys
from paddock.ports.definitions import PersonRole
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.values import replace

KEYS = "/api/v1/api-keys"
TAKE_OVER = "/api/v1/take-over"
MAX_NAME = 128
KEY_ID = "6f1d2c7e-3b5a-4d8e-9c21-7a0b4e5d6f12"
KeyId = Annotated[str, about("Its keyId.", example=KEY_ID)]
PrintableName = Annotated[
    str,
    about(
        must=f"be a printable string of 1 to {MAX_NAME} characters",
        check=str.isprintable,
        min_length=1,
        max_length=MAX_NAME,
    ),
]


class NewKey(Body):
    user: PrintableName
    workspace: PrintableName | UnsetType = UNSET
    role: PersonRole = "user"


class Key(Answer):
    """A key that was just made. It is shown only now; its hash is all that is kept."""

    key_id: KeyId
    key: Annotated[str, about(example="pdk_...")]
    workspace: str
    user: str
    role: PersonRole


class KeyEntry(Answer):
    """A key in a list, without the key itself."""

    key_id: KeyId
    workspace: str
    user: str
    role: PersonRole
    created_at: Moment
    revoked_at: Moment | None = None


class KeyList(Answer):
    keys: list[KeyEntry]


class LeftByDev(Answer):
    """The amount that can be taken over."""

    user: Annotated[str, about(example="dev")]
    workspace: str
    conversations: Count
    automations: Count


class TakeOver(Body):
    user: PrintableName


class TakenOver(Answer):
    conversations: Count
    busy: Count
    left: Count


@dataclass(frozen=True, kw_only=True)
class KeysDoor(Operations):
    group = "People"
    auth: Auth
    keys: ApiKeys
    note: Callable[[AuditRow], None] = lambda _row: None
    taking_over: TakingOver

    @operation("GET", KEYS, {200: "The keys of the workspace, without the keys themselves."}, role="admin")
    async def list_keys(self, who: Principal) -> KeyList:
        """List who has keys

        Of the caller's workspace; whoever runs the host sees all."""
        rows = await self.keys.api_keys(None if who.operator else who.workspace_id)
        return KeyList([seen(KeyEntry, row, workspace=row.workspace_id, user=row.user_id) for row in rows])

    @operation("POST", KEYS, {201: "The key; it is shown only now."}, role="admin")
    async def create_key(self, who: Principal, body: NewKey) -> Key:
        """Make a key"""
        workspace = who.workspace_id if body.workspace is UNSET else body.workspace
        refusal = self._why_not(who, workspace, body.user)
        self.note(decided(who, "api_keys.create", f"{workspace}/{body.user}", allowed=refusal is None))
        if refusal is not None:
            raise HostError(ErrorCode.UNAUTHORIZED, refusal)
        key, row = new_key(workspace, body.user, body.role, by_operator=who.operator)
        await self.keys.add_key(row)
        self.auth.key_added()
        return Key(row.key_id, key, row.workspace_id, row.user_id, row.role)

    @operation("DELETE", f"{KEYS}/{{key}}", {204: "Nobody is let in with it any more."}, role="admin", errors=(404,))
    async def revoke_key(self, who: Principal, key: KeyId) -> None:
        """Revoke a key"""
        rows = await self.keys.api_keys(None if who.operator else who.workspace_id, limit=100_000)
        row = next((row for row in rows if row.key_id == key), None)
        if row is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such key")
        await self.keys.revoke_key(row.key_id, time.time(), decided(who, "api_keys.revoke", key, allowed=True))
        self.auth.key_revoked(row)

    @operation("GET", TAKE_OVER, {200: "How much there is."}, role="operator")
    async def waiting(self, who: Principal) -> LeftByDev:
        """Count what dev said that somebody could take over"""
        found = await self.taking_over.owned_by_dev(who)
        return LeftByDev(DEV.user_id, DEV.workspace_id, found.conversations, found.automations)

    @operation(
        "POST",
        TAKE_OVER,
        {200: "What was handed over, and what is left: ask again while that is more than `busy`."},
        role="operator",
    )
    async def take_over(self, who: Principal, body: TakeOver) -> TakenOver:
        """Hand what dev said to a user

        Conversations go with their files, then automations and the calendar."""
        if not who.operator:
            self.note(decided(who, "user.take_over", body.user, allowed=False))
        taken = await self.taking_over.take_over(who, body.user)
        return TakenOver(taken.conversations, taken.busy, taken.left)

    def _why_not(self, who: Principal, workspace: str, user: str) -> str | None:
        """Return why this caller may not make a key for this user. A key can do all that its user can."""
        if who.operator:
            return None
        if who.workspace_id != workspace:
            return "a key of this workspace makes keys for this workspace only"
        named = self.auth.operators.names(workspace, user)
        return "this user runs the host, and who does makes their keys" if named else None


def decided(who: Principal, action: str, resource: str, *, allowed: bool = True) -> AuditRow:
    """Make the audit row of something that an administrator did, or was not let do."""
    row = who.audit(action, resource, at=time.time())
    return row if allowed else replace(row, result="unauthorized")
