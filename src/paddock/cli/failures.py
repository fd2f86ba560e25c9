"""How a command fails: a sentence for a person and an exit code. Never a traceback."""

USAGE = 2
FAILED = 1


class CommandError(Exception):
    """What went wrong and what to do about it, in one or two sentences."""

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
