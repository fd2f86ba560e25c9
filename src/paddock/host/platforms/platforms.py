"""The platforms set up on this host: their principals, keys and abilities.

It implements platform actions: an action a user approved is sent to the platform's webhook, once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from paddock.host.people.principals import Principal
from paddock.ports import ConversationRecords, DeliveryRecords
from paddock.ports.platforms import Performed, PlatformAction, Posted, Webhooks
from paddock.rules.access.permissions import RunScope
from paddock.rules.access.signatures import webhook_headers, webhook_key
from paddock.rules.agents.specs import PlatformSpec, platform_name_problem
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.events import HANDED_OVER
from paddock.rules.log.payloads import as_object
from paddock.rules.values import Value

ACTION_SECONDS = 25.0
"""Less than approvals wait, so that an answer arrives before its action counts as unknown."""
POST_SECONDS = 15.0
ASKED = frozenset({"USER_INPUT", "USER_INPUT:MENTION", HANDED_OVER})
"""Facts with the input of a run."""


class _Records(ConversationRecords, DeliveryRecords, Protocol): ...


class PlatformError(Exception):
    """The settings of a platform are wrong; one sentence for the operator."""


class Platform(Value, frozen=True):
    """One platform, with its signing keys."""

    name: str
    principal: Principal
    spec: PlatformSpec
    incoming: bytes
    outgoing: bytes

    def delivery(self, reply_target: Mapping[str, Any]) -> Mapping[str, Any]:
        """`ctx.delivery` of the platform's runs."""
        spec = self.spec
        delivery: dict[str, Any] = {
            "surface": self.name,
            "reply_target": reply_target,
            "supports_streaming": spec.streaming,
            "supports_edit": "message.edit" in spec.actions,
            "supports_reaction": "reaction.add" in spec.actions,
            "platform_capabilities": {
                "actions": list(spec.actions),
                "delivers": spec.webhook is not None,
                "size_in": spec.size_in,
                "interactions": spec.interactions,
            },
        }
        return delivery if spec.max_message_size is None else {**delivery, "max_message_size": spec.max_message_size}


class Platforms:
    def __init__(
        self,
        specs: Mapping[str, PlatformSpec],
        *,
        reveal: Callable[[str], str],
        webhooks: Webhooks,
        records: _Records,
        clock: Callable[[], float],
    ) -> None:
        self._all = {name: _settled(name, spec, reveal) for name, spec in specs.items()}
        self._webhooks = webhooks
        self._records = records
        self._clock = clock

    def find(self, name: str | None) -> Platform | None:
        """The platform of this name; without a name, the only one if there is only one."""
        if name is None:
            return next(iter(self._all.values())) if len(self._all) == 1 else None
        return self._all.get(name)

    def __bool__(self) -> bool:
        return bool(self._all)

    async def post(self, platform: Platform, message_id: str, body: bytes, *, seconds: float = POST_SECONDS) -> Posted:
        """Send a signed message to a platform, once."""
        if platform.spec.webhook is None:
            return Posted(None, f"platform {platform.name!r} has no webhook any more")
        headers = webhook_headers(platform.outgoing, message_id, self._clock(), body)
        return await self._webhooks.post(platform.spec.webhook, body, headers, seconds=seconds)

    # --- platform actions --------------------------------------------------------------------------------------------

    def offers(self, scope: RunScope, action: str) -> bool:
        platform = self._all.get(scope.platform or "")
        return platform is not None and platform.spec.webhook is not None and action in platform.spec.actions

    async def perform(self, action: PlatformAction) -> Performed:
        place = await self._records.platform_conversation(action.session_id)
        platform = self._all.get(place.platform) if place is not None else None
        if place is None or platform is None:
            return Performed(ok=False, detail="the platform of this conversation is not set up any more")
        body = {
            "type": "platform.action",
            "action": action.action,
            "approval_id": action.approval_id,
            "run_id": action.run_id,
            "target": action.target,
            "payload": action.payload,
            "reply_target": await self._reply_target(action) or msgspec.Raw(place.reply_target),
            "timestamp": self._clock(),
        }
        posted = await self.post(platform, action.approval_id, msgspec.json.encode(body), seconds=ACTION_SECONDS)
        if posted.ok:
            return Performed(ok=True)
        if posted.status is None:  # it may still have arrived
            raise TimeoutError(posted.problem)
        return Performed(ok=False, detail=f"the platform answered {posted.status}")

    async def _reply_target(self, action: PlatformAction) -> Mapping[str, Any] | None:
        """The reply target of the run's own input, which may differ from the newest one. None when it is gone."""
        run = await self._records.run(action.run_id)
        seq, last = (run.first_seq, run.last_seq) if run is not None else (1, 0)
        while seq <= last:
            fact = await self._records.fact(action.session_id, seq)
            if fact is not None and fact.kind in ASKED:
                about = as_object(as_object(fact.read_payload()).get("run"))
                delivery = as_object(
                    fact.read_metadata().get("delivery") or as_object(about.get("event")).get("delivery")
                )
                return as_object(delivery.get("reply_target")) or None
            seq += 1
        return None


def _settled(name: str, spec: PlatformSpec, reveal: Callable[[str], str]) -> Platform:
    if (problem := platform_name_problem(name)) is not None:
        raise PlatformError(f"platforms.{name}: {problem}")
    incoming = _key(name, "secret", reveal(spec.secret))
    outgoing = incoming if spec.webhook_secret is None else _key(name, "webhook_secret", reveal(spec.webhook_secret))
    return Platform(name, Principal(spec.workspace, spec.user or name), spec, incoming, outgoing)


def _key(name: str, field: str, secret: str) -> bytes:
    try:
        key = webhook_key(secret)
    except ValueError as error:
        raise PlatformError(f"platforms.{name}.{field}: {error}") from error
    if len(key) < 16:
        raise PlatformError(f"platforms.{name}.{field} is missing or too short: it needs at least 16 bytes")
    return key


def unknown_platform() -> HostError:
    return HostError(ErrorCode.UNAUTHENTICATED, "this event is not signed by a platform that is known here")
