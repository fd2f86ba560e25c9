"""Sums in a message, as the demo model finds them: digits with signs or words between them. Pure.

What looks like a date, a telephone number or a range is none: a minus or a slash counts where there is space on both
sides of it, or where the message is nothing but the sum.
"""

import re
from collections.abc import Sequence

from paddock_sdk.protocol.messages import LLMTool

PARAMETER = "expression"
"""A tool that requires a text of this name can be asked for a sum."""
LONGEST = 500
"""Longer messages are no sums."""
_WORDS: Sequence[tuple[str, str]] = (
    (r"(?<=[\d)])\s*%\s*(?:of|的)\s*(?=[\d(])", " / 100 * "),
    (r"\b(?:divided by|over)\b|除以|÷", " / "),
    (r"\bplus\b|加上?|＋", " + "),
    (r"\bminus\b|减去?|－", " - "),
    (r"\btimes\b|\bmultiplied by\b|乘以?|×|(?<=\d)\s*[xX]\s*(?=\d)", " * "),
    (r"\bto the power of\b|的?次方|\^", " ** "),
)
_NUMBER = r"(?:\( ?)*+-?\d++(?:\.\d++)?+(?: ?\))*+"
"""A number with its brackets. Here, as below, there is one way to read any text, so nothing is tried twice."""
_LOOSE = re.compile(rf"{_NUMBER}(?:(?: ?(?:\*\*|[+*]) ?| (?://|[-/%]) ){_NUMBER})++")
_TIGHT = re.compile(rf" ?{_NUMBER}(?: ?(?:\*\*|//|[-+*/%]) ?{_NUMBER})++ ?")
_BEFORE = re.compile(
    r"^(?:please )?(?:what(?:'s| is)|how much is|calculate|compute|请问|计算(?:一下)?)? ?:? ?", re.IGNORECASE
)
_AFTER = re.compile(r"(?:=|是多少|等于(?:多少|几)?|得多少)? ?[=?？.。!]*$")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{2,4}")


def sum_in(text: str) -> str | None:
    """The sum that a message holds, in digits and signs: `what is 2 plus 3` gives `2 + 3`."""
    if len(text) > LONGEST:
        return None
    said = " ".join(text.split())
    for words, sign in _WORDS:
        said = re.sub(words, sign, said, flags=re.IGNORECASE)
    said = " ".join(said.split())
    alone = _AFTER.sub("", _BEFORE.sub("", said))
    found = None if _DATE.search(said) else _TIGHT.fullmatch(alone) or _LOOSE.search(said)
    whole = " ".join(found[0].split()) if found else ""
    return whole if whole and whole.count("(") == whole.count(")") else None


def calculator(tools: Sequence[LLMTool]) -> LLMTool | None:
    """The first tool that a sum can be given to."""
    return next((tool for tool in tools if (tool.parameters.get("required") or []) == [PARAMETER]), None)
