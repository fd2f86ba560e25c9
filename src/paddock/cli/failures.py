"""How a command fails: a sentence for a person and an exit code. Never a traceback."""

USAGE = 2
FAILED = 1


class CommandError(Exception):
    """What went wrong and what to do about it, in one or two sentences."""

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def as_sentence(error: object) -> str:
    """What an error says, with an end: some end in a question (`did you mean tools?`)."""
    text = str(error)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def with_advice(error: Exception) -> str:
    """What a store says, and what to do about it where it does not say so itself."""
    from paddock.storage.postgres.connection import advice_on

    return f"{error}. {advice_on(error)}".rstrip()
