"""Finds the functions an operator offers as tools: in a Python file, or in an installed module.

The names in `__all__` are the tools; without it every public function that the file itself defines.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from paddock.tools.functions import FunctionTool, ToolDefinitionError, signature_of


def load_tools(places: Sequence[str], *, beside: Sequence[FunctionTool] = ()) -> Sequence[FunctionTool]:
    """Load the tools of these files and modules. Raises ToolDefinitionError, naming the place, also for a name in
    use."""
    found: dict[str, FunctionTool] = {tool.info.name: tool for tool in beside}
    for place in places:
        for tool in tools_in(_module(place), place):
            if (other := found.get(tool.info.name)) is not None:
                raise ToolDefinitionError(
                    f"{place}: there is a tool {tool.info.name!r} in {other.info.source} already; rename one"
                )
            found[tool.info.name] = tool
    return list(found.values())[len(beside) :]


def tools_in(module: ModuleType, source: str, *, tool_type: str = "function") -> Sequence[FunctionTool]:
    tools: list[FunctionTool] = []
    for function in _functions(module, source):
        try:
            tools.append(FunctionTool(function, signature_of(function, tool_type=tool_type, source=source)))
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"{source}: {error}") from error
    return tools


def _functions(module: ModuleType, source: str) -> Sequence[Callable[..., Any]]:
    named = getattr(module, "__all__", None)
    if named is None:
        own = [one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__]
        functions = [function for function in own if not function.__name__.startswith("_")]
    else:
        functions = [getattr(module, name, None) for name in named]
        if wrong := next(
            (name for name, one in zip(named, functions, strict=True) if not inspect.isfunction(one)), None
        ):
            raise ToolDefinitionError(f"{source}: {wrong!r} in __all__ is no function of this file")
    if not functions:
        raise ToolDefinitionError(f"{source} defines no public function; a tool is a function with typed parameters")
    return functions  # pyright: ignore[reportReturnType] - each was seen to be a function


def _module(place: str) -> ModuleType:
    try:
        return module_from(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ToolDefinitionError:
        raise
    except (Exception, SystemExit) as error:  # the operator's code may do anything while it is imported
        raise ToolDefinitionError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def module_from(path: Path) -> ModuleType:
    if not path.is_file():
        raise ToolDefinitionError(f"{path}: there is no such file")
    name = f"paddock_tools_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsItIs(name, str(path)))
    if spec is None or spec.loader is None:
        raise ToolDefinitionError(f"{path} cannot be read as a Python file")
    module, before = importlib.util.module_from_spec(spec), sys.modules.get(name)
    sys.modules[name] = module  # annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        _put_back(name, before)
        raise
    return module


class _AsItIs(SourceFileLoader):
    """Reads the file itself. What Python keeps compiled beside it is taken for the same file when it was changed within
    one second and has as many bytes."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the name is Python's
        return self.source_to_code(self.get_data(self.path), self.path)


def _put_back(name: str, before: ModuleType | None) -> None:
    """A file that is broken now does not take the place of what was there."""
    if before is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = before
