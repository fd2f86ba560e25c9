"""The program: runs a command; every failure that a person can cause ends in a sentence and an exit code."""

import os
import signal
import sys
import threading
from collections.abc import Sequence

from paddock.cli.hosting.process import leave
from paddock.cli.hosting.starting import plain_flags, start
from paddock.cli.output import FAILED, USAGE, CommandError
from paddock_sdk.causes import cause_of


def main() -> None:
    """Run the command that was typed."""
    leave(_outcome(sys.argv[1:]))


def serve_while_watched(flags: Sequence[str]) -> None:
    """Serve until standard input ends: the process that started this one holds its other end."""

    def watch() -> None:
        while os.read(0, 4096):  # not through sys.stdin: its lock must be free when Python leaves
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    sys.argv = ["paddock", "serve", *flags]
    main()


def _outcome(words: Sequence[str]) -> object:
    try:
        _do(words)
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return FAILED
    except Exception as error:  # the last line of defence: a person sees a sentence, a developer asks for more
        if os.environ.get("PADDOCK_DEBUG"):
            raise
        return _fail(error)
    return 0


def _do(words: Sequence[str]) -> None:
    flags = plain_flags(words)
    if flags is not None:
        start(flags)
    else:
        _run(words)


def _run(words: Sequence[str]) -> None:
    import click

    from paddock.cli.app import app

    try:
        sys.exit(app.main(words, prog_name="paddock", standalone_mode=False))
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)


def _fail(error: Exception) -> int:
    print(f"paddock: {_sentence(error)}", file=sys.stderr, flush=True)
    _forget_output()
    return _exit_code(error)


def _sentence(error: Exception) -> str:
    if _is_known(error):
        return str(error)
    return f"{cause_of(error)} (this should not happen; paddock --debug shows where)"


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
    """Flush or drop waiting output, so that Python does not complain a second time when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
