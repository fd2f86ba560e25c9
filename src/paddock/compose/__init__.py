"""Puts a host together. The only room that knows every plug: `rooms` has the parts, `doors` the ways in."""

from paddock.compose.build import build
from paddock.compose.house import House
from paddock.compose.parts import mark_of
from paddock.compose.rooms import Rooms, rooms_of
from paddock.host.people.principals import HOME

__all__ = ["HOME", "House", "Rooms", "build", "mark_of", "rooms_of"]
