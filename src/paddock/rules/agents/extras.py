"""Features whose packages are not installed with the core: the extra that brings each, and the sentence without it."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from paddock.rules.errors import ErrorCode, HostError

EXTRAS: Mapping[str, str] = {
    "asyncpg": "postgres",
    "nats": "nats",
    "obstore": "s3",
    "numpy": "knowledge",
    "pypdf": "knowledge",
    "PIL": "pictures",
    "icalendar": "calendar",
    "opentelemetry.sdk": "otel",
}
"""The extra that brings a package, by the name it is imported under."""


def _top(name: str) -> str:
    return name.partition(".")[0]


_OF_TOP = {_top(name): extra for name, extra in EXTRAS.items()}


def advice(what: str, error: ModuleNotFoundError) -> str | None:
    """The sentence that says which extra `what` needs; None when the missing module is of no extra."""
    extra = _OF_TOP.get(_top(error.name or ""))
    if extra is None:
        return None
    return f"{what} needs packages that are not installed here: pip install 'paddock[{extra}]'"


@contextmanager
def needed_for(what: str) -> Generator[None]:
    """Import packages of an extra. Raises HostError with the sentence when they are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        text = advice(what, error)
        if text is None:
            raise
        raise HostError(ErrorCode.RUNTIME_ERROR, text) from None
