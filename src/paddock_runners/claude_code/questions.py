"""Claude Code's tool for asking a person, in words that fit any chat. Pure."""

from collections.abc import Mapping
from typing import Any

from paddock_runners.toolkit.values import listing, mapping

TOOL = "AskUserQuestion"


def words_of(given: Mapping[str, Any]) -> str:
    """Each question with what may be chosen; nothing when it asks nothing."""
    return "\n\n".join(filter(None, map(_words, _questions(given))))


def choices_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Where one of them is the whole answer."""
    questions = _questions(given)
    if len(questions) != 1 or questions[0].get("multiSelect"):
        return ()
    return tuple(str(option["label"]) for option in _options(questions[0]))


def _questions(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [asked for one in listing(given.get("questions")) if (asked := mapping(one)).get("question")]


def _options(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [option for one in listing(question.get("options")) if (option := mapping(one)).get("label")]


def _words(question: Mapping[str, Any]) -> str:
    offered = [f"- {option['label']}" + _more(option.get("description")) for option in _options(question)]
    return "\n".join([str(question["question"]), *offered])


def _more(description: object) -> str:
    return f": {description}" if description else ""
