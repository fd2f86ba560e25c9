"""Tools that every host has: what a model cannot know or is bad at. They read, and change nothing."""

import ast
import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["calculate", "current_time"]

MAX_EXPRESSION = 500
MAX_POWER = 1000

Binary = Callable[[Any, Any], Any]
_BINARY: Mapping[type[ast.AST], Binary] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: operator.mod,
}


def current_time(zone: str = "UTC") -> dict[str, str]:
    """Tell what time and date it is now in a time zone.

    Args:
        zone: IANA name of the time zone, for example Europe/Berlin or Asia/Shanghai.
    """
    try:
        now = datetime.now(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"there is no time zone {zone!r}; use an IANA name such as Europe/Berlin") from error
    return {"time": now.isoformat(timespec="seconds"), "weekday": now.strftime("%A"), "zone": zone}


def calculate(expression: str) -> int | float:
    """Calculate an arithmetic expression with + - * / // % ** and brackets.

    Args:
        expression: for example "(2 + 3) * 4".
    """
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"an expression may have at most {MAX_EXPRESSION} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is not an arithmetic expression") from error
    return _value(tree.body)


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left), _value(right))
        case _:
            raise ValueError("only numbers, + - * / // % ** and brackets can be calculated")


def _power(base: float, exponent: float) -> int | float:
    if abs(exponent) > MAX_POWER or abs(base) > 10**MAX_POWER:
        raise ValueError(f"a power may have at most the exponent {MAX_POWER}")
    return base**exponent


current_time.read_only = True  # pyright: ignore[reportFunctionMemberAccess] - read by signature_of
calculate.read_only = True  # pyright: ignore[reportFunctionMemberAccess]
