"""An action a run asks the platform for, and what became of it. Pure; time is a value.

Three must agree: the runner's manifest, the agent's owner, and the user whose conversation it is. The first two are in
the grant. The third is a record per (run, action, target, payload): decided once, done once.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec

from paddock.rules.access.permissions import Grant
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.rules.values import Value

APPROVAL_SECONDS = 1800.0
"""How long a user may think about it."""
MAX_PER_RUN = 100
HANDOVER = "session.handover"
"""Asked for like an action, but a matter of the session: no platform does it and no approval is kept."""

DECIDED, DONE = "decided", "done"
ApprovalStatus = Literal["pending", "granted", "denied", "expired"]
ApprovalDecision = Literal["granted", "denied"]

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Approval(Value, frozen=True):
    """An action asked for, and the steps since. Each step is written once: the first writer wins."""

    asked: ApprovalRow
    decided: ApprovalStepRow | None = None
    done: ApprovalStepRow | None = None

    def status(self, now: float) -> ApprovalStatus:
        if self.decided is not None:
            return "granted" if self.decided.result == "granted" else "denied"
        return "pending" if now <= self.asked.expires_at else "expired"

    def outcome(self, now: float) -> str:
        """Where the request stands: pending, denied, expired; then doing, done, failed or unknown."""
        status = self.status(now)
        if status != "granted":
            return status
        return self.done.result if self.done is not None else "doing"


def approval_for(
    grant: Grant, action: str, target: Mapping[str, Any], payload: Mapping[str, Any], at: float, *, key: bytes
) -> ApprovalRow:
    """The record of one request. The same request of the same run is the same record.

    Its id is made of the request under a key that is stored nowhere, because audit rows with the id outlive the words.
    """
    scope = grant.scope
    target_json, payload_json = _canonical(target), _canonical(payload)
    digest = hmac.digest(key, _canonical((scope.run_id, action, target, payload)), sha256).hex()
    return ApprovalRow(
        approval_id=f"ap_{digest[:40]}",
        workspace_id=scope.workspace_id,
        user_id=scope.user_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
        agent_id=scope.agent_id,
        action=action,
        target=target_json,
        payload=payload_json,
        created_at=at,
        expires_at=at + APPROVAL_SECONDS,
    )
