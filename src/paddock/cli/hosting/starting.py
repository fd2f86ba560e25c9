"""Start a host from the command line: read plain flags without click, and load the host's program late.

`paddock serve --port 0 --data DIR` is read here, without the library that reads the rest of the command line: it would
stay in memory, two megabytes and more, for as long as the host runs. Whatever is not that plain (a question for help,
an option nobody knows, one that is given twice) is left to that library, which says what is wrong.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
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


ONCE = frozenset(
    {
        "data",
        "host",
        "port",
        "agents",
        "store",
        "config",
        "log_level",
        "log_format",
        "isolation",
        "run_deadline_seconds",
    }
)
REPEATED = frozenset({"plugins", "env_allow"})
Flags = dict[str, "str | list[str]"]


def plain_flags(words: Sequence[str]) -> Flags | None:
    """Read the settings of a plain `serve` command; None for any other command line."""
    if not words or words[0] != "serve":
        return None
    flags: Flags = {}
    for name, value in _pairs(words[1:]):
        if name in REPEATED and value is not None:
            flags[name] = [*flags.get(name, ()), value]
        elif name in ONCE and name not in flags and value is not None:
            flags[name] = value
        else:
            return None
    return flags


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values, `--name value` or `--name=value`; None where a value is missing or looks like one."""
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        given = value if has_value else next(rest, "-")
        yield _setting(name), None if given.startswith("-") and not has_value else given


def _setting(option: str) -> str:
    """`--log-level` is `log_level`; what is no option has no name."""
    return option[2:].replace("-", "_") if option.startswith("--") and "_" not in option else ""


def start(flags: Mapping[str, object]) -> None:
    """Serve until somebody stops it. `config` among the flags is the file that holds further settings."""
    from paddock import settings

    config = flags.get("config")
    loaded = settings.load(
        {name: value for name, value in flags.items() if name != "config"},
        config=None if config is None else Path(str(config)),
    )
    for warning in settings.unknown_variables():
        print(f"paddock: {warning}", file=sys.stderr, flush=True)

    load_serve()(loaded)
