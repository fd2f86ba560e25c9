"""Usage and budgets of people and workspaces, queries about a whole workspace, and sums for charts. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import ceil
from typing import get_args

from paddock.rules.rows.rows import AuditRow, RunEnd
from paddock.rules.values import Value
from paddock_sdk.protocol.messages import ContentElement, LLMTool, Message

BYTES_PER_TOKEN = 4
"""Of Latin text a token is four letters; a Chinese character is three bytes and somewhat less than a token."""
PICTURE_TOKENS = 1200


class Payer(Value, frozen=True):
    """On whose behalf a model is asked. Outside a run there is neither an agent nor a conversation."""

    workspace_id: str
    user_id: str
    agent_id: str = ""
    run_id: str = ""
    session_id: str = ""


def cost_of(
    prompt_tokens: int | None, completion_tokens: int | None, *, prompt_price: float, completion_price: float
) -> float | None:
    """Prices are per million tokens. None when the provider did not count: unknown is not free."""
    if prompt_tokens is None and completion_tokens is None:
        return None
    return ((prompt_tokens or 0) * prompt_price + (completion_tokens or 0) * completion_price) / 1_000_000


def about_tokens_in(*texts: str) -> int:
    return -(-sum(len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN)


def about_tokens_of(messages: Sequence[Message], tools: Sequence[LLMTool]) -> int:
    words = about_tokens_in(
        *(message.text for message in messages),
        *(call.function.arguments for message in messages for call in message.tool_calls or ()),
        *(tool.model_dump_json() for tool in tools),
    )
    elements = (one for message in messages if isinstance(message.content, list) for one in message.content)
    return words + PICTURE_TOKENS * sum(map(_is_picture, elements))


def _is_picture(element: ContentElement) -> bool:
    return element.image_base64 is not None or element.image_url is not None


DAY = 86_400.0


class Budget(Value, frozen=True):
    """Caps for one user, or for one workspace. None: no cap."""

    tokens_per_day: int | None = None
    cost_per_day: float | None = None
    calls_at_once: int | None = None

    @property
    def counts(self) -> bool:
        return self.tokens_per_day is not None or self.cost_per_day is not None

    def for_call(self, *, free: bool, at_once: bool) -> "Budget":
        """The caps that matter to a call: money only to one that costs, a place only to one that takes one."""
        if not free and at_once:
            return self
        return Budget(self.tokens_per_day, None if free else self.cost_per_day, self.calls_at_once if at_once else None)


class Exceeded(Value, frozen=True):
    """The cap that is reached, in words, and when it opens again; None: as soon as another call ends."""

    text: str
    resets_at: float | None


def day_of(now: float) -> float:
    """Return the start of the counted day: midnight UTC."""
    return now - now % DAY


def over_budget(who: str, budget: Budget, *, tokens: int, cost: float, at_once: int, now: float) -> Exceeded | None:
    """Return the cap that refuses another call, if one does. Calls under way have no usage yet and do not count."""
    resets_at = day_of(now) + DAY
    if budget.calls_at_once is not None and at_once >= budget.calls_at_once:
        return Exceeded(f"{who} has {at_once} model calls under way, as many as are allowed at once", None)
    if budget.tokens_per_day is not None and tokens >= budget.tokens_per_day:
        return Exceeded(f"{who} has used {tokens} of {budget.tokens_per_day} tokens for today (UTC)", resets_at)
    if budget.cost_per_day is not None and cost >= budget.cost_per_day:
        return Exceeded(f"{who} has spent {cost:.4g} of {budget.cost_per_day:g} for today (UTC)", resets_at)
    return None


MAX_LISTED = 200


class RunsQuery(Value, frozen=True):
    """Filter for runs; None or empty matches all."""

    workspace_id: str
    user_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    statuses: tuple[str, ...] = ()
    before: str | None = None
    """Ids of runs are in order of time: only runs begun before this one."""
    limit: int = 50


class AuditQuery(Value, frozen=True):
    """Filter for audit rows; None matches all."""

    workspace_id: str
    actor: str | None = None
    action: str | None = None
    """An action, or the beginning of one that ends with `*`."""
    result: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    since: float | None = None
    until: float | None = None
    before: int | None = None
    limit: int = 50
    of_hosts: bool = False
    """Also those of no workspace: what hosts decided for all."""


class AuditEntry(Value, frozen=True):
    number: int
    row: AuditRow


class UsageLine(Value, frozen=True):
    """The model calls of one agent with one model in one span of time."""

    start: float
    agent_id: str
    model_id: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost: float
    unpriced: int = 0
    """Calls that were answered by a model whose price nobody named: what they cost is not known."""


class Spender(Value, frozen=True):
    user_id: str
    calls: int
    total_tokens: int
    cost: float
    unpriced: int = 0


class Lap(Value, frozen=True):
    created_at: float
    started_at: float | None
    ended_at: float | None
    status: str


class Pace(Value, frozen=True):
    """The runs of one span of time: how many, how they ended, and how long they took, in seconds."""

    start: float
    runs: int
    completed: int
    failed: int
    cancelled: int
    median: float | None
    slowest_twentieth: float | None
    """95 of 100 runs that completed took at most this long."""


def paces(laps: Iterable[Lap], every: int) -> Sequence[Pace]:
    """Laps added up by span, the oldest span first. Spans without runs are left out."""

    def span(lap: Lap) -> float:
        return lap.created_at // every * every

    return [pace_of(start, list(group)) for start, group in groupby(sorted(laps, key=span), key=span)]


def pace_of(start: float, laps: Sequence[Lap]) -> Pace:
    ended = {status: sum(lap.status == status for lap in laps) for status in get_args(RunEnd)}
    took = sorted(
        lap.ended_at - (lap.started_at or lap.created_at)
        for lap in laps
        if lap.status == "completed" and lap.ended_at is not None
    )
    return Pace(start, len(laps), **ended, median=_at(took, 0.5), slowest_twentieth=_at(took, 0.95))


def _at(ordered: Sequence[float], share: float) -> float | None:
    return ordered[max(0, ceil(len(ordered) * share) - 1)] if ordered else None


def known_cost(cost: float, unpriced: int) -> float | None:
    """A cost as it is told: None when all there is was answered by models without a price. Unknown is not zero."""
    return None if unpriced and not cost else round(cost, 9)
