"""Loading the host's program: late, because asking a question must not wait for it, and without what it never uses."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddock.settings import Settings


def load_serve() -> "Callable[[Settings], None]":
    """The function that runs a host until somebody stops it."""
    if "structlog" not in sys.modules and "rich" not in sys.modules:
        # structlog loads rich, and rich a lexer for every language, for tracebacks that we write plainly: 4 megabytes.
        sys.modules["rich"] = None  # pyright: ignore[reportArgumentType] - how Python is told there is no such module
        import_module("structlog")
        del sys.modules["rich"]
    from paddock.cli.serve import serve

    return serve
