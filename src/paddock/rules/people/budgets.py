"""How much of the models a user and a workspace may use. Pure: what was used and what time it is come in as values."""

from paddock.rules.values import Value

DAY = 86_400.0


class Budget(Value, frozen=True):
    """Caps for one user, or for one workspace. None: no cap."""

    tokens_per_day: int | None = None
    cost_per_day: float | None = None
    calls_at_once: int | None = None

    @property
    def counts(self) -> bool:
        """Whether anything must be added up."""
        return self.tokens_per_day is not None or self.cost_per_day is not None

    def for_call(self, *, free: bool, at_once: bool) -> "Budget":
        """The caps that matter to a call: money only to one that costs, a place only to one that takes one."""
        if not free and at_once:
            return self
        return Budget(self.tokens_per_day, None if free else self.cost_per_day, self.calls_at_once if at_once else None)


class Exceeded(Value, frozen=True):
    """Which cap is reached, in words, and when it opens again; None: as soon as another call ends."""

    text: str
    resets_at: float | None


def day_of(now: float) -> float:
    """When the day began that is being counted: midnight UTC."""
    return now - now % DAY


def over_budget(who: str, budget: Budget, *, tokens: int, cost: float, at_once: int, now: float) -> Exceeded | None:
    """Why another call may not be made, if it may not. What is under way is not known yet and does not count."""
    resets_at = day_of(now) + DAY
    if budget.calls_at_once is not None and at_once >= budget.calls_at_once:
        return Exceeded(f"{who} has {at_once} model calls under way, as many as are allowed at once", None)
    if budget.tokens_per_day is not None and tokens >= budget.tokens_per_day:
        return Exceeded(f"{who} has used {tokens} of {budget.tokens_per_day} tokens for today (UTC)", resets_at)
    if budget.cost_per_day is not None and cost >= budget.cost_per_day:
        return Exceeded(f"{who} has spent {cost:.4g} of {budget.cost_per_day:g} for today (UTC)", resets_at)
    return None
