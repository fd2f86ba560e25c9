"""Labels and descriptions of the official runners, in the languages of the console. No other texts live here."""

from collections.abc import Mapping


def both(english: str, chinese: str) -> Mapping[str, str]:
    """A label or a description of a manifest."""
    return {"en_US": english, "zh_Hans": chinese}
