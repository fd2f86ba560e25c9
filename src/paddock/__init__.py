"""Paddock, an agent host. An agent written as a Python file needs one name from here: `from paddock import Agent`."""

from paddock.agent import Agent

__all__ = ["Agent"]
