"""Failures of model providers as host errors: a code, a sentence with cause and cure, never a key.

A provider's words about the question are told to whoever asked it. Its words about the account, its failures and its
address are for whoever runs the host.
"""

from collections.abc import Mapping

from paddock.rules.errors import ErrorCode, HostError

MAX_WORDS = 600
TO_MEND: Mapping[int, tuple[str, str]] = {
    401: ("refused its key", "check the key named in the settings"),
    402: ("wants to be paid first", "see to the account that its key belongs to"),
    403: ("refused its key", "check the key named in the settings"),
    404: ("does not know it", "check `model` and `base_url` in the settings"),
}
"""What the operator has to mend, by the provider's status: what it does, and the cure. Another model may answer."""


def refused(model_id: str, status: int, words: str, *, retry_after: float | None = None) -> HostError:
    details = {"status": status} | ({"retry_after": retry_after} if retry_after is not None else {})
    words = " ".join(words.split())[:MAX_WORDS]
    said = f": {words}" if words else ""
    name = f"the model {model_id!r}"
    match status:
        case _ if status in TO_MEND:
            what, cure = TO_MEND[status]
            text = f"the provider of {name} {what}; {cure}"
            return HostError(ErrorCode.RUNTIME_ERROR, text, details=details, for_operators=text + said)
        case _ if 300 <= status < 400:
            text = f"the provider of {name} sends questions elsewhere, and nobody follows; check `base_url`"
            return HostError(ErrorCode.RUNTIME_ERROR, text, details=details)
        case 413:
            return HostError(
                ErrorCode.PAYLOAD_TOO_LARGE, f"the question is too large for {name}{said}", details=details
            )
        case 429:
            text = f"the provider of {name} wants fewer questions; try again later"
            code = ErrorCode.RATE_LIMITED
            return HostError(code, text, retryable=True, details=details, for_operators=text + said)
        case _ if 400 <= status < 500 and status not in {408, 409, 425}:
            return HostError(ErrorCode.INVALID_ARGUMENT, f"{name} refused the question{said}", details=details)
        case _:
            text = f"the provider of {name} failed with status {status}; try again later"
            code = ErrorCode.RUNTIME_ERROR
            return HostError(code, text, retryable=True, details=details, for_operators=text + said)


def unreachable(model_id: str, address: str) -> HostError:
    text = f"the provider of the model {model_id!r} cannot be reached"
    where = f"{text} at {address}; is it running there?"
    return HostError(ErrorCode.RUNTIME_ERROR, text, retryable=True, for_operators=where)


def no_turn(model_id: str, seconds: float) -> HostError:
    text = f"the model {model_id!r} was busy with other questions for {seconds:.3g} seconds; try again later"
    return HostError(ErrorCode.RATE_LIMITED, text, retryable=True)


def silent(model_id: str, seconds: float) -> HostError:
    text = f"the provider of the model {model_id!r} said nothing for {seconds:.3g} seconds"
    return HostError(ErrorCode.RUNTIME_ERROR, text, retryable=True)


def broken_off(model_id: str) -> HostError:
    text = f"the provider of the model {model_id!r} broke off in the middle of its answer"
    return HostError(ErrorCode.RUNTIME_ERROR, text, retryable=True)


def rubbish(model_id: str, what: str) -> HostError:
    text = f"the provider of the model {model_id!r} said something that is not its API"
    more = f"{text} ({what}); check `base_url`"
    return HostError(ErrorCode.RUNTIME_ERROR, text, retryable=True, for_operators=more)


def no_key(model_id: str, why: str, *, for_all: bool) -> HostError:
    """`for_all`: the cure names no place of this host, so that everybody may read it."""
    text = f"the model {model_id!r} has no key"
    whole = f"{text}: {why}"
    return HostError(ErrorCode.RUNTIME_ERROR, whole if for_all else text, for_operators=whole)


def unforeseen(model_id: str, words: str) -> HostError:
    text = f"the model {model_id!r} failed"
    return HostError(ErrorCode.RUNTIME_ERROR, text, for_operators=f"{text}: {words}")


def cannot(model_id: str, what: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"the model {model_id!r} cannot {what}; choose another for that")


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait, when it says so as a number."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    return None
