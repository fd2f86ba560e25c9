"""Options, arguments and families of commands, and what several commands take: a host, settings, a list as JSON."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from paddock.cli.client import connect


class _Explained(click.Argument):
    def __init__(self, *names: Any, says: str, **more: Any) -> None:
        super().__init__(*names, **more)
        self.says = says


class _Command(click.Command):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(found.make_metavar(ctx), found.says) for found in self.params if isinstance(found, _Explained)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)


class Family(click.Group):
    """A group of commands under one word."""

    command_class = _Command


def family(says: str) -> Family:
    return Family(help=says, no_args_is_help=True)


def option(
    *names: str, says: str, env: str = "", metavar: str = "", flag: bool = False, many: bool = False, **more: Any
) -> Any:
    """An option whose help also names the environment variable that sets the same thing.

    `kind` among `more` is its type, `many` lets it be repeated, `flag` is one without a value.
    """
    text = f"{says}  [env: {env}]" if env else says
    if flag:
        return click.option(*names, help=text, is_flag=True, default=False)
    if many:
        more["callback"] = _listed
    return click.option(*names, help=text, metavar=metavar or None, multiple=many, **_typed(more))


def argument(name: str, *, says: str, many: bool = False, **more: Any) -> Any:
    """An argument with a line of help; `many` takes all words that follow."""
    if many:
        more = {"nargs": -1, "required": True, "callback": _listed, **more}
    return click.argument(name, cls=_Explained, says=says, **_typed(more))


def _typed(more: dict[str, Any]) -> dict[str, Any]:
    kind = more.pop("kind", str)
    return {**more, "type": click.Path(path_type=Path) if kind is Path else kind}


def _listed(_context: click.Context, _parameter: click.Parameter, given: tuple[Any, ...]) -> list[Any] | None:
    return list(given) or None


with_data = option("--data", says="Data directory; .paddock unless set.", env="PADDOCK_DATA", metavar="DIR", kind=Path)
with_url = option("--url", says="The host to talk to; found by itself.", env="PADDOCK_URL", metavar="URL")
with_config = option(
    "--config",
    says="TOML file with settings; <data>/paddock.toml if there is one.",
    env="PADDOCK_CONFIG",
    metavar="FILE",
    kind=Path,
)
with_json = option("--json", "as_json", says="Print the answer as JSON.", flag=True)
with_yes = option("--yes", says="Do it without asking.", flag=True)


def with_host(command: Callable[..., Any]) -> Any:
    """Give the command the running host that `--url` and `--data` name, as `host`."""

    @wraps(command)
    def connected(*, url: str | None, data: Path | None, **given: Any) -> Any:
        return command(host=connect(url, data), **given)

    return with_url(with_data(connected))


def with_settings(*options: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Give the command the host's settings, as `settings`: what these options say wins over the other sources."""

    def decorated(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def loaded(*, config: Path | None, **given: Any) -> Any:
            from paddock.settings import Settings, load

            flags = {name: given.pop(name) for name in list(given) if name in Settings.model_fields}
            return command(settings=load(flags, config=config), **given)

        for added in (with_config, *reversed(options)):
            loaded = added(loaded)
        return loaded

    return decorated
