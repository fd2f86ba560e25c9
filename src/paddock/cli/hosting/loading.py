"""Loading the host's program: late, because asking a question must not wait for it, and without what it never uses."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddock.settings import Settings


def load_serve() -> "Callable[[Settings], None]":
    """The function that runs a host until somebody stops it."""
    if "structlog" not in sys.modules:
        with _absent("rich", "greenlet"):
            import_module("structlog")
    from paddock.cli.hosting.serve import serve

    return serve


@contextmanager
def _absent(*names: str) -> Generator[None]:
    """structlog loads rich, and rich a lexer for every language, for tracebacks that we write plainly; and greenlet,
    where somebody has it: five megabytes that are never used.
    """
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType] - how Python is told there is no such module
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
