"""Puts the house together. The only room that knows every plug: `build` for the parts, `doors` for the ways in."""

from paddock.compose.build import build
from paddock.compose.house import HOME, House, Tasks
from paddock.compose.parts import mark_of

__all__ = ["HOME", "House", "Tasks", "build", "mark_of"]
