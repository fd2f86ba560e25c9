"""Whether to ask a model again, and after how long. Pure; whoever asks obeys."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0


def pause_before(attempt: int, *, retries: int, asked_for: float | None, seconds_left: float) -> float | None:
    """Seconds to wait before attempt number `attempt` + 1 (the first is 0); None: give up.

    Waits double from half a second; a provider that says how long to wait is obeyed up to ten seconds. No wait is
    begun that the run would not live to see the end of.
    """
    if attempt >= retries:
        return None
    pause = FIRST_PAUSE * 2**attempt if asked_for is None else asked_for
    if pause > LONGEST_PAUSE or pause >= seconds_left:
        return None
    return pause
