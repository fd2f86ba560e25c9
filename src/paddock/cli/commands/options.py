"""Options that several commands take, written once."""

from pathlib import Path
from typing import Annotated, Any

import typer


def option(*names: str, says: str, env: str = "", metavar: str = "") -> Any:
    """An option whose help also names the environment variable that sets the same thing."""
    text = f"{says}  [env: {env}]" if env else says
    return typer.Option(*names, help=text, metavar=metavar or None, show_default=False)


Data = Annotated[
    Path | None, option("--data", says="Data directory; .paddock unless set.", env="PADDOCK_DATA", metavar="DIR")
]
Url = Annotated[
    str | None, option("--url", says="The host to talk to; found by itself.", env="PADDOCK_URL", metavar="URL")
]


Config = Annotated[
    Path | None,
    option(
        "--config",
        says="TOML file with settings; <data>/paddock.toml if there is one.",
        env="PADDOCK_CONFIG",
        metavar="FILE",
    ),
]


def family(says: str) -> typer.Typer:
    """A group of commands under one word."""
    return typer.Typer(help=says, no_args_is_help=True, rich_markup_mode=None)
