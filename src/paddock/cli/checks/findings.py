"""What an examination found: one line for a person, and what to do about it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    state: Literal["ok", "note", "fail"]
    says: str
    remedy: str = ""


def shown(finding: Finding, *, colours: bool) -> str:
    mark = {"ok": "ok  ", "note": "note", "fail": "FAIL"}[finding.state]
    tint = {"ok": "\x1b[32m", "note": "\x1b[33m", "fail": "\x1b[31m"}[finding.state]
    painted = f"{tint}{mark}\x1b[0m" if colours else mark
    return f"{painted}  {finding.name:<14} {finding.says}" + (
        f"\n      {'':<14} -> {finding.remedy}" if finding.remedy else ""
    )
