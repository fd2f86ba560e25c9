"""Read words as an answer to "may I?": a yes, a no, or neither. Pure.

A yes is nothing but yes, in as many words as people like; a no may go on to say what is wanted instead, since nothing
is done on it. Everything else is neither, and the question is asked again.
"""

import re

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
"""Characters that are invisible, or that change the order in which others are shown."""


def to_be_seen(text: str) -> str:
    """Show every hidden character of a question as its number."""
    return HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


LONGEST = 200
"""More characters than this say more than yes or no."""
_YES_WORDS = (
    r"yes|y|yeah|yep|yup|ok|okay|sure|of course|certainly|absolutely|approved?|agreed?|confirm(?:ed)?|go ahead|"
    r"(?:please )?do it|please do|i (?:approve|agree|confirm)(?: it| this)?"
)
_YES_CHARACTERS = "是的?|好的?|好啊|行|可以的?|我?同意|批准|确认|没问题|请?执行"
_POLITE = r"\b(?:please|pls|thanks?|thank you|thx)\b|请|谢谢你?"
_NO_WORDS = (
    r"no|n|nope|nah|no thanks|no thank you|not now|never mind|den(?:y|ied)|reject(?:ed)?|stop|cancel|abort|"
    r"(?:please )?(?:do not|don['’]?t)(?: do (?:it|that|this))?"
)
_NO_CHARACTERS = "不|不是|不行|不要|不用|不可以|不同意|不批准|不用了|不了|否|拒绝|取消|别|算了"
_PAUSE = r"[\s,.!;，。！；、]"
_YES_PART = rf"(?:\b(?:{_YES_WORDS})\b|{_YES_CHARACTERS})"
_YES = re.compile(rf"{_PAUSE}*{_YES_PART}(?:{_PAUSE}*(?:{_YES_PART}|{_POLITE}))*{_PAUSE}*", re.IGNORECASE)
_NO = re.compile(
    rf"{_PAUSE}*(?:(?:{_NO_WORDS})\b|{_NO_CHARACTERS})(?:{_PAUSE}*(?:{_POLITE}))*(?:\s*[,.!;，。！；:：-].*|\s*)",
    re.IGNORECASE | re.DOTALL,
)


def consent_in(text: str) -> bool | None:
    """None for whatever is not plainly one of them, such as a question, a condition or a yes with a "but"."""
    if _NO.fullmatch(text):
        return False
    return True if len(text) <= LONGEST and _YES.fullmatch(text) else None
