"""In which of our two languages a runner asks: the one its user set, else the one they write in."""

import re

from paddock_sdk import RunContext

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def speaks_chinese(ctx: RunContext) -> bool:
    if locale := ctx.runtime.locale:
        return locale.lower().startswith("zh")
    return _CHINESE.search(ctx.text) is not None
