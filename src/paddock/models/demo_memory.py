"""What people told the demo model about themselves, read from the messages it is shown. It keeps nothing."""

import re
from collections.abc import Iterable, Mapping

_END = r"(?=[.,;!?。，；！？\n]|\s+and\s+my\s|$)"
_STATED = re.compile(
    rf"\bmy\s+([a-z][a-z ]{{0,40}}?)\s+(?:is|are)\s+([^.,;!?。，；！？\n]{{1,80}}?){_END}", re.IGNORECASE
)
_NAMED = re.compile(r"\b(?:call me|i am called|i'm called)\s+([^\W\d_][\w'-]{0,40})", re.IGNORECASE)
_NAMED_ZH = re.compile(r"我(?:叫|的名字是|的名字叫)\s*([^\s，。！？、,.!?吗么什]{1,12})")
_STATED_ZH = re.compile(r"我的([^\s，。！？、,.!?]{1,8}?)是\s*([^\s，。！？、,.!?吗么什]{1,20})")
_ASKED = re.compile(
    r"\b(?:what(?:'s| is| are| was)|tell me|do you (?:know|remember)|remember)\s+my\s+([a-z][a-z ]{0,40})",
    re.IGNORECASE,
)
_ASKED_ZH = re.compile(
    r"我的?([^\s，。！？、,.!?我]{0,8}?)(?:叫|是)(?:什么|谁)|你(?:知道|记得)我的?([^\s，。！？、,.!?]{1,8})吗"
)


def told(texts: Iterable[str]) -> dict[str, str]:
    """Facts by what they are about, the newest last said: {"name": "Ann", "favourite colour": "blue"}."""
    facts: dict[str, str] = {}
    for text in texts:
        for about, value in _STATED.findall(text):
            facts[_about(about)] = value.strip(" \"'")
        facts |= {_about(about): value for about, value in _STATED_ZH.findall(text)}
        for name in (*_NAMED.findall(text), *_NAMED_ZH.findall(text)):
            facts["name"] = name
    return facts


def asked_for(text: str) -> str | None:
    """What a question wants to know about the person, or None when it asks something else."""
    if found := _ASKED.search(text):
        return _about(re.split(r"(?<!\s)\s+(?:is|are|was)\b", found[1])[0])
    if re.search(r"\bwho am i\b", text, re.IGNORECASE):
        return "name"
    if found := _ASKED_ZH.search(text):
        return _about(found[1] or found[2] or "名字")
    return None


def recall(about: str, facts: Mapping[str, str]) -> str:
    """The answer to such a question."""
    if about in facts:
        return f"Your {about} is {facts[about]}."
    return f"You have not told me your {about} in this conversation."


def _about(words: str) -> str:
    plain = " ".join(words.lower().split())
    return "name" if plain in {"名字", "姓名"} else plain
