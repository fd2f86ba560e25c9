"""The command line: which commands there are. What they take is in `commands/`, one module per family; the work is in
one module per command, imported when that command runs, so that asking a question never waits for what answers it.
"""

import os
import sys
from typing import Annotated

import typer

from paddock.cli.commands import (
    admin,
    agents,
    approvals,
    automations,
    deliveries,
    harness,
    hosting,
    keys,
    knowledge,
    runner,
    talking,
)
from paddock.cli.commands.options import option
from paddock.cli.failures import FAILED, USAGE, CommandError

app = typer.Typer(
    name="paddock",
    help="An agent host: agents plug in as runners; conversations, keys and permissions are kept in one place.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (hosting.serve, hosting.run, talking.chat, hosting.doctor, talking.explain):
    app.command()(command)
FAMILIES = {
    "admin": admin.admin,
    "keys": keys.keys,
    "knowledge": knowledge.knowledge,
    "approvals": approvals.approvals,
    "automations": automations.automations,
    "deliveries": deliveries.deliveries,
    "agents": agents.agents,
    "runner": runner.runner,
    "harness": harness.harness,
}
for name, commands in FAMILIES.items():
    app.add_typer(commands, name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def everything(
    debug: Annotated[bool, option("--debug", says="Show tracebacks of failures.", env="PADDOCK_DEBUG")] = False,
    version: Annotated[  # noqa: ARG001 - its callback has done the work
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    if debug:
        os.environ["PADDOCK_DEBUG"] = "1"


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    from paddock.cli.output import write

    write(version_of("paddock") + "\n")


def main() -> None:
    """Run a command; whatever a person can cause ends in a sentence and an exit code."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _silence_stdout()
        sys.exit(FAILED)
    except Exception as error:  # the last line of defence: a person sees a sentence, a developer asks for more
        if os.environ.get("PADDOCK_DEBUG"):
            raise
        _fail(error)


def _fail(error: Exception) -> None:
    typer.echo(f"paddock: {_sentence(error)}", err=True)
    _forget_output()
    sys.exit(_exit_code(error))


def _sentence(error: Exception) -> str:
    if _is_known(error):
        return str(error)
    return f"{type(error).__name__}: {error} (this should not happen; paddock --debug shows where)"


def _is_known(error: Exception) -> bool:
    from paddock.rules.errors import HostError, StorageUnavailableError

    return isinstance(error, CommandError | HostError | StorageUnavailableError) or _is_settings_error(error)


def _is_settings_error(error: Exception) -> bool:
    """Asked without importing the settings: a command that never read them cannot have failed in them."""
    module = sys.modules.get("paddock.settings")
    return module is not None and isinstance(error, module.SettingsError)


def _exit_code(error: Exception) -> int:
    if isinstance(error, CommandError):
        return error.exit_code
    return USAGE if _is_settings_error(error) else FAILED


def _forget_output() -> None:
    """What still waits and cannot be written must not end in a second complaint when Python leaves."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
