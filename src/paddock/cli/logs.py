"""Log lines on standard error: for people, or one JSON object each. Secrets and message bodies stay out of them."""

import logging
import sys
from typing import Any

import structlog

_TRACEBACKS = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)  # locals hold keys, config and what people wrote
)


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


def _rendered(form: str) -> list[Any]:
    if form == "json":
        return [_TRACEBACKS, structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]


def _adopt_standard_logging(level: int, shared: list[Any], form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendered(form)],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
