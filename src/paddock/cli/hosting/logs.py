"""Log lines on standard error: for people, or one JSON object each. Secrets and message bodies stay out of them."""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from io import StringIO
from typing import Any, TextIO

import structlog

from paddock.cli.output import spelled

_TRACEBACKS = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)  # locals hold keys, config and what people wrote
)

_EXTRA = structlog.stdlib.ExtraAdder(allow=("action", "error"))


def configure(level: str, form: str) -> None:
    """Set up structlog, and let libraries that log the standard way speak through the same lines."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, *_rendered(form)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    _adopt_standard_logging(max(number, logging.WARNING), shared, form)
    logging.getLogger("asyncpg").setLevel(logging.ERROR)  # a database that is away is told of by the store, in a line


def _rendered(form: str) -> list[Any]:
    if form == "json":
        return [_TRACEBACKS, structlog.processors.JSONRenderer()]
    return [
        _spelled,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_traceback),
    ]


def _traceback(out: TextIO, about: structlog.typing.ExcInfo) -> None:
    whole = StringIO()
    structlog.dev.plain_traceback(whole, about)
    out.write(spelled(whole.getvalue()))


def _spelled(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A text without a blank is rendered as it is, and some were written by runners."""
    return {name: spelled(value) if isinstance(value, str) else value for name, value in line.items()}


def _adopt_standard_logging(level: int, shared: list[Any], form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _with_ours],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendered(form)],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _with_ours(_: Any, name: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Add the extra fields of our own log lines; those of libraries may hold secrets and stay out.

    Of an error the first line: a database goes on with the values it was given.
    """
    if line["_record"].name.partition(".")[0] != "paddock":
        return line
    told = dict(_EXTRA(_, name, line))
    if "error" in told:
        told["error"] = "".join(str(told["error"]).splitlines()[:1])
    return told
