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
MAX_DIGITS = 4000
MAX_BITS = MAX_DIGITS * 332 // 100
TOO_LONG = f"a number here may have at most some {MAX_DIGITS} digits, also on the way to the result"
MAX_ZONE = 100
"""Characters of a wrong name that are repeated."""
NO_ZONES = frozenset({"", "localtime", "Factory"})
"""Files in the database that are no time zones; the first of them would tell where this machine is."""

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
        if zone in NO_ZONES:
            raise ValueError
        now = datetime.now(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # the last: a directory, a name that no file can have
        text = f"there is no time zone {zone[:MAX_ZONE]!r}; use an IANA name such as Europe/Berlin"
        raise ValueError(text) from error
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
    try:
        return _value(tree.body)
    except ZeroDivisionError as error:
        raise ValueError("nothing can be divided by zero") from error
    except OverflowError as error:
        raise ValueError("the result is too large") from error


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _small(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _small(_power(_value(left), _value(right)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _small(_BINARY[type(op)](_value(left), _value(right)))
        case _:
            raise ValueError("only numbers, + - * / // % ** and brackets can be calculated")


def _power(base: float, exponent: float) -> Any:
    """The power, if it can be no number of very many digits: a step with those keeps all others waiting."""
    if abs(exponent) > MAX_POWER:
        raise ValueError(f"a power may have at most the exponent {MAX_POWER}")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise ValueError(TOO_LONG)
    if base < 0 and exponent % 1:
        raise ValueError("a root of a negative number is not calculated here")
    return base**exponent


def _small(number: Any) -> int | float:
    if isinstance(number, int) and number.bit_length() > MAX_BITS:
        raise ValueError(TOO_LONG)
    return number


current_time.read_only = True  # pyright: ignore[reportFunctionMemberAccess] - read by signature_of
calculate.read_only = True  # pyright: ignore[reportFunctionMemberAccess]
